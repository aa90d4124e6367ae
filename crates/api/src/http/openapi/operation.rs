//! One call as the document says it.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Content, Header, ObjectBuilder, Ref, Required, Response, ResponseBuilder, Type,
        path::{
            Operation, OperationBuilder, Parameter as Said, ParameterBuilder, ParameterIn,
            ParameterStyle,
        },
        request_body::RequestBodyBuilder,
        security::SecurityRequirement,
    },
};

use super::{
    TOKEN, answers,
    bodies::Attribute,
    calls::{Answers, Call, PLAIN, Parameter},
};

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// The operation of a call with one of its methods.
pub(super) fn operation(call: &Call, method: &str) -> Operation {
    let mut operation = OperationBuilder::new()
        .summary(Some(call.does))
        .operation_id(Some(operation_id(call, method)));
    for parameter in call.parameters {
        operation = operation.parameter(said(*parameter));
    }
    if let Some(body) = &call.body {
        let body = RequestBodyBuilder::new()
            .content(JSON, Content::new(Some(Ref::from_schema_name(body))))
            .required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    if call.needs_token {
        // Without a token set on the node, a loopback listener needs none.
        let token = SecurityRequirement::new(TOKEN, [""; 0]);
        operation = operation
            .security(token)
            .security(SecurityRequirement::default());
    }
    for (status, response) in answers_of(&call.answers) {
        operation = operation.response(status, response);
    }
    for status in call.problems {
        operation = operation.response(status.to_string(), problem(*status, call));
    }
    operation.build()
}

/// `postV1Check`.
fn operation_id(call: &Call, method: &str) -> String {
    let mut id = method.to_owned();
    for word in call
        .path
        .split(|letter: char| !letter.is_ascii_alphanumeric())
    {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

fn said(parameter: Parameter) -> Said {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let whole = || ObjectBuilder::new().schema_type(Type::Integer);
    let truth = || ObjectBuilder::new().schema_type(Type::Boolean);
    let built = ParameterBuilder::new().parameter_in(ParameterIn::Query);
    let (built, does) = match parameter {
        Parameter::Wait => (
            built.name("wait").schema(Some(truth())),
            "Hold the answer back for `delay_ms` of an admitted check, at most 5 seconds.",
        ),
        Parameter::PolicyInPath => (
            built
                .name("policy")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .schema(Some(text())),
            "The policy.",
        ),
        Parameter::DenyStatus => (
            built
                .name("deny_status")
                .schema(Some(whole().minimum(Some(400)).maximum(Some(599)))),
            "The status of a refusal; else that of the policy.",
        ),
        Parameter::Policy => (
            built.name("policy").schema(Some(text())),
            "The policy, `default` if it is left out.",
        ),
        Parameter::Limit => (
            built
                .name("limit")
                .required(Required::True)
                .schema(Some(text())),
            "The limit.",
        ),
        Parameter::Attributes => (
            built
                .name("attributes")
                .style(Some(ParameterStyle::Form))
                .explode(Some(true))
                .schema(Some(
                    ObjectBuilder::new().additional_properties(Some(Attribute::schema())),
                )),
            "`attr.<name>=<value>` for each attribute that the limit counts by.",
        ),
    };
    built.description(Some(does)).build()
}

fn answers_of(answers: &Answers) -> Vec<(&'static str, Response)> {
    let admitted = "Admitted.";
    let refused = "Refused.";
    let undecided = "No node could decide it in time, and the limit's fallback is to deny.";
    let not_passed = "Refused, undecided, or asked in a wrong way.";
    match answers {
        Answers::Decision => vec![
            (
                "200",
                decision::<answers::Decision>(described(admitted), JSON),
            ),
            (
                "429",
                decision::<answers::Decision>(described(refused), PROBLEM),
            ),
            (
                "503",
                decision::<answers::Decision>(described(undecided), PROBLEM),
            ),
        ],
        Answers::Proxy => vec![
            ("200", rated(described(admitted))),
            (
                "4XX",
                decision::<answers::ProxyRefusal>(described(not_passed), PROBLEM),
            ),
            (
                "5XX",
                decision::<answers::ProxyRefusal>(described(not_passed), PROBLEM),
            ),
        ],
        Answers::Json(schema) => {
            let content = Content::new(Some(Ref::from_schema_name(schema)));
            vec![("200", done().content(JSON, content).build())]
        }
        Answers::Text(media) => vec![("200", done().content(*media, text()).build())],
        Answers::Object => {
            let any = Content::new(Some(ObjectBuilder::new()));
            vec![("200", done().content(JSON, any).build())]
        }
        Answers::Nothing => vec![("204", done().build())],
    }
}

fn done() -> ResponseBuilder {
    described("Done.")
}

fn text() -> Content {
    Content::new(Some(ObjectBuilder::new().schema_type(Type::String)))
}

fn decision<T: ToSchema>(response: ResponseBuilder, media: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name(T::name())));
    rated(response.content(media, content))
}

fn described(says: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(says)
}

/// With the headers of the families that a policy has unless told otherwise.
fn rated(response: ResponseBuilder) -> Response {
    let whole = |says: &str| {
        let whole = ObjectBuilder::new().schema_type(Type::Integer);
        let mut header = Header::new(whole);
        header.description = Some(says.to_owned());
        header
    };
    let text = |says: &str| {
        let mut header = Header::new(ObjectBuilder::new().schema_type(Type::String));
        header.description = Some(says.to_owned());
        header
    };
    response
        .header(
            "X-RateLimit-Limit",
            whole("The capacity of the headline limit."),
        )
        .header("X-RateLimit-Remaining", whole("Units that still fit."))
        .header(
            "X-RateLimit-Reset",
            whole("Unix time at which its counter is empty."),
        )
        .header(
            "RateLimit-Policy",
            text("The limits, as revision 10 of the IETF draft says them."),
        )
        .header(
            "RateLimit",
            text("What is left of each, as revision 10 of the IETF draft says it."),
        )
        .header(
            "Retry-After",
            whole("Seconds, of a refusal that waiting cures."),
        )
        .header(
            "Tollgate-Degraded",
            text("`fallback`, if counts may be missing."),
        )
        .build()
}

fn problem(status: u16, call: &Call) -> Response {
    let says = match status {
        400 => "The body, a parameter or a field is wrong; nothing was changed.",
        401 => "The call needs the node's token.",
        403 => "The check brings its own limit, and the node takes none.",
        404 => "No such policy, limit or id.",
        408 => "The body did not come in time.",
        409 => "Something was done with the id before; that stands.",
        413 => "The body is above 1 MiB.",
        415 => "The body is not JSON.",
        _ => "Not now.",
    };
    let response = described(says);
    match call.answers {
        Answers::Text(_) => response.content(PLAIN, text()).build(),
        Answers::Decision
        | Answers::Proxy
        | Answers::Json(_)
        | Answers::Object
        | Answers::Nothing => {
            let content = Content::new(Some(Ref::from_schema_name(answers::Problem::name())));
            response.content(PROBLEM, content).build()
        }
    }
}
