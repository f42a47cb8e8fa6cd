//! An action that nobody ruled on is not executed, and a ruling cannot be swapped for another request.
use tracegate::{
    gate::{PendingAction, PermittedAction},
    session::Session,
    tools::{self, Request},
};

async fn execute(session: &mut Session, action: PendingAction) {
    tools::execute(session, action).await.ok();
}

fn swap(action: &mut PermittedAction, request: Request) {
    *action.request() = request;
}

fn twice(action: &PermittedAction) -> PermittedAction {
    action.clone()
}

fn main() {}
