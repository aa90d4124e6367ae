//! `GET /openapi.json`: all calls, for machines.
//!
//! Made once from the types beside this file. They stand for bodies and answers that are read and written
//! by hand for speed; the tests hold both to each other, so that the document never tells what is not so.

#![expect(
    dead_code,
    reason = "the types are there for their schemas: none is ever made"
)]

mod answers;
mod bodies;
mod calls;
#[cfg(test)]
pub(super) mod held;
mod operation;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use axum::response::Response;
use bytes::Bytes;
use http::header;
use utoipa::{
    ToSchema,
    openapi::{
        Components, ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths,
        RefOr, Schema,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use super::answer::JSON;

/// The name of the operators' token in the document.
const TOKEN: &str = "token";

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
    let written = document().to_json();
    debug_assert!(written.is_ok(), "plain structs always serialize");
    Bytes::from(written.unwrap_or_default())
});

/// `GET /openapi.json`.
pub(super) async fn openapi() -> Response {
    let mut response = Response::new(axum::body::Body::from(DOCUMENT.clone()));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    std::future::ready(response).await
}

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Tollgate")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A distributed, exact rate limiter with no central store.",
        ))
        .license(Some(
            LicenseBuilder::new()
                .name("MIT OR Apache-2.0")
                .identifier(Some("MIT OR Apache-2.0"))
                .build(),
        ));
    OpenApiBuilder::new()
        .info(info.build())
        .paths(paths())
        .components(Some(components()))
        .build()
}

fn paths() -> Paths {
    let mut paths = Paths::new();
    for call in calls::all() {
        for (method, name) in call.methods {
            let operation = operation::operation(&call, name);
            paths.add_path_operation(call.path, vec![method.clone()], operation);
        }
    }
    paths
}

fn components() -> Components {
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let mut components = ComponentsBuilder::new().security_scheme(TOKEN, token);
    let schemas = [
        schemas_of::<bodies::Check>(),
        schemas_of::<bodies::Checks>(),
        schemas_of::<bodies::RefundById>(),
        schemas_of::<bodies::Refund>(),
        schemas_of::<bodies::Settle>(),
        schemas_of::<bodies::Report>(),
        schemas_of::<bodies::Release>(),
        schemas_of::<bodies::Switch>(),
        schemas_of::<answers::Decision>(),
        schemas_of::<answers::Decisions>(),
        schemas_of::<answers::Counter>(),
        schemas_of::<answers::Amended>(),
        schemas_of::<answers::ProxyRefusal>(),
        schemas_of::<answers::Cluster>(),
        schemas_of::<answers::Problem>(),
    ];
    for (name, schema) in schemas.into_iter().flatten() {
        components = components.schema(name, schema);
    }
    components.build()
}

/// The schema of a type and of all that it is made of.
fn schemas_of<T: ToSchema>() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}
