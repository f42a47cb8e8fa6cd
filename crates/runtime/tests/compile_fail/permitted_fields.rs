//! The fields are private, so it cannot be put together.
use tracegate::{gate::PermittedAction, tools::Request};
use tracegate_core::{fact::gate::Class, ids::ActionId};

fn main() {
    let request = Request::Read { path: "a".to_owned(), from: 1, to: None };
    let _ = PermittedAction { id: ActionId(1), request, class: Class::Read };
}
