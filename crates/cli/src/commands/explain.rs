//! `tracegate explain`: why a run failed, as a table of findings and as a five-part post-mortem.

use crate::{
    Outcome,
    args::{Explain, Global, Lang},
    commands::{run::view, show::store_of},
    environment::Environment,
    ingredients, print, runs,
};
use serde_json::json;
use tracegate_report::{Language, Width, attribution, postmortem};

pub(crate) fn explain(environment: &Environment, global: &Global, args: &Explain) -> Outcome {
    let found = runs::find(environment, &store_of(environment, global), &args.run)?;
    let redactor = ingredients::redactor(environment, &found.store, None);
    let view = view(found.dir.id(), &found)?;
    let language = match args.lang {
        Lang::En => Language::En,
        Lang::Zh => Language::Zh,
    };
    let attribution = attribution::explain(&view, found.holder, language);
    let postmortem = postmortem::write(&view, found.holder, language);
    let text = if args.json {
        json!({ "attribution": attribution, "postmortem": postmortem }).to_string()
    } else {
        let width = Width::new(environment.columns);
        format!(
            "{}\n{}\nwhat each tool did: tracegate show {}",
            attribution::render(&attribution, width),
            postmortem::render(&postmortem, width),
            args.run
        )
    };
    print::answer(&redactor.scrub_text(text));
    Ok(crate::commands::show::warn(&redactor, &found.tail))
}
