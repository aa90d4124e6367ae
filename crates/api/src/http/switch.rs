//! The switches of the cluster: `PUT /v1/switches/kill` and `PUT /v1/switches/shadow`.
//!
//! Both can lift every limit, so they are the operators'. Knows nothing of how the other nodes are told.

use std::sync::Arc;

use axum::extract::State;
use http::{Request, Response, header};

use crate::{
    checker::Checker,
    http::{
        Shared,
        answer::JSON,
        ask::{SWITCH_EXAMPLE, read_switch},
        body::Posted,
        check,
        operate::{self, SwitchesBody},
        problem::Problem,
        whole::Whole,
    },
    operator::{Operator, Switch},
};

type Reply = Response<axum::body::Body>;
type Asked = Request<axum::body::Body>;

/// `PUT /v1/switches/kill`.
pub(super) async fn kill<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    set(&shared, Switch::Kill, request).await
}

/// `PUT /v1/switches/shadow`.
pub(super) async fn shadow<C: Checker, O: Operator>(
    State(shared): State<Arc<Shared<C, O>>>,
    request: Asked,
) -> Reply {
    set(&shared, Switch::Shadow, request).await
}

async fn set<C: Checker, O: Operator>(
    shared: &Shared<C, O>,
    switch: Switch,
    request: Asked,
) -> Reply {
    let answered = match operate::admit(shared, &request) {
        Ok(()) => done(shared, switch, Posted::new(request)).await,
        Err(problem) => Err(problem),
    };
    let response = answered.unwrap_or_else(Problem::into_response);
    response.map(axum::body::Body::new)
}

/// Reads how the switch is to stand, and sets it: how both stand then.
async fn done<C, O: Operator>(
    shared: &Shared<C, O>,
    switch: Switch,
    posted: Posted<axum::body::Body>,
) -> Result<Response<Whole>, Problem> {
    let body = check::json_body(&shared.config, posted, SWITCH_EXAMPLE).await?;
    let on = read_switch(&body);
    let on = on.map_err(|error| check::not_json(&body, &error, SWITCH_EXAMPLE))??;
    let switches = shared.operator.set_switch(switch, on);
    let json = operate::to_json(&SwitchesBody::from(switches));
    let mut response = Response::new(Whole::new(json.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}
