//! For tests: holds each answer to what the document says of it, its status and every member.

use std::{collections::HashMap, sync::LazyLock};

use http::{Method, StatusCode, header, response::Parts};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::document;

/// The document, as it is served.
pub(super) static SAID: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(document()).unwrap());

/// For each schema, what holds instances to it; members that it does not name are none of it.
static CLOSED: LazyLock<HashMap<String, Validator>> = LazyLock::new(|| {
    let names = SAID["components"]["schemas"].as_object().unwrap().keys();
    names.map(|name| (name.clone(), closed(name))).collect()
});

/// What is wrong with an instance by the schema of that name.
pub(super) fn faults(name: &str, instance: &Value) -> Vec<String> {
    let faults = CLOSED[name].iter_errors(instance);
    faults
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

/// Holds an answer to the document.
pub(in crate::http) fn to_the_document(method: &Method, path: &str, parts: &Parts, body: &[u8]) {
    let media = parts.headers.get(header::CONTENT_TYPE);
    let media = media.map(|media| media.to_str().unwrap());
    let method = method.as_str().to_ascii_lowercase();
    let calls = &SAID["paths"][template(path)];
    let mut call = &calls[&method];
    if call.is_null() && template(path) != path {
        // Proxies pass on methods that the document has no word for.
        call = &calls["get"];
    }
    if call.is_null() || parts.status == StatusCode::METHOD_NOT_ALLOWED {
        // No such path or method: there is nothing to say but what is wrong.
        assert_eq!(media, Some("application/problem+json"), "{method} {path}");
        assert_eq!(faults("Problem", &parsed(body)), [""; 0], "{method} {path}");
        return;
    }
    let status = parts.status.as_str();
    let class = format!("{}XX", &status[..1]);
    let answers = &call["responses"];
    let answer = answers.get(status).unwrap_or(&answers[class]);
    assert!(
        !answer.is_null(),
        "{method} {path} does not tell of {status}"
    );
    let Some(contents) = answer["content"].as_object() else {
        assert_eq!(
            (media, body),
            (None, b"".as_slice()),
            "{method} {path} {status}"
        );
        return;
    };
    let essence = media.map(|media| media.split(';').next().unwrap());
    let (told, content) = contents.iter().next().unwrap();
    assert_eq!(essence, Some(told.as_str()), "{method} {path} {status}");
    let Some(schema) = content["schema"]["$ref"].as_str() else {
        return;
    };
    if method == "head" {
        return;
    }
    let name = schema.rsplit('/').next().unwrap();
    let instance = parsed(body);
    assert_eq!(
        faults(name, &instance),
        [""; 0],
        "{method} {path} {status}: {instance}"
    );
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// The path as the document writes it.
fn template(path: &str) -> &str {
    if path.starts_with("/v1/forward-auth/") {
        return "/v1/forward-auth/{policy}";
    }
    path
}

fn closed(name: &str) -> Validator {
    let mut components = SAID["components"].clone();
    for (other, schema) in components["schemas"].as_object_mut().unwrap() {
        // What a part of another schema does not name, the whole may.
        let is_part = name == "Counter" && other == "LimitState";
        if !is_part && (schema.get("properties").is_some() || schema.get("allOf").is_some()) {
            schema["unevaluatedProperties"] = json!(false);
        }
    }
    let reference = format!("#/components/schemas/{name}");
    let whole = json!({"$ref": reference, "components": components});
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap()
}
