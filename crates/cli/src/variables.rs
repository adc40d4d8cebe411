//! Variables of the environment that are almost ours: a misspelt one would silently do nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;

use bandog::LocksBuilder;
use clap::CommandFactory;

use crate::args::Cli;
use crate::caution;
use crate::near;

const PREFIX: &str = "BANDOG_";
/// Set for commands under a lock, or by `acquire --export`.
const SET: &[&str] = &[
    "BANDOG_NAME",
    "BANDOG_HOLDER",
    "BANDOG_TOKEN",
    "BANDOG_WAITED_MS",
    "BANDOG_TICKET",
    "BANDOG_LOST_REASON",
    "BANDOG_LOST_MESSAGE",
];

/// Warns of each variable that has almost the name of one of ours.
pub(crate) fn warn_of_misspelt(json: bool) {
    for (name, meant) in misspelt(std::env::vars_os().map(|(name, _)| name)) {
        caution::say(&format!("the variable {name} means nothing here; did you mean {meant}?"), json);
    }
}

fn misspelt(names: impl Iterator<Item = OsString>) -> BTreeSet<(String, String)> {
    let known = known();
    let ours = names.filter_map(|name| name.into_string().ok().filter(|name| name.starts_with(PREFIX)));
    ours.filter(|name| !known.contains(name))
        .filter_map(|name| {
            near::nearest(&name, known.iter().map(String::as_str)).map(str::to_owned).map(|meant| (name, meant))
        })
        .collect()
}

fn known() -> BTreeSet<String> {
    let mut command = Cli::command();
    command.build();
    let args = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let of_args = args.filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned));
    let of_library = LocksBuilder::OPTIONS.iter().map(|option| format!("{PREFIX}{}", option.to_uppercase()));
    of_args.chain(of_library).chain(SET.iter().map(|&name| name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_almost_ours_is_misspelt() {
        let found = |names: &[&str]| {
            let found = misspelt(names.iter().map(OsString::from));
            found.into_iter().map(|(name, meant)| format!("{name} {meant}")).collect::<Vec<_>>()
        };
        assert_eq!(
            found(&["BANDOG_STROE", "BANDOG_LEASES"]),
            ["BANDOG_LEASES BANDOG_LEASE", "BANDOG_STROE BANDOG_STORE"]
        );
        assert!(found(&["BANDOG_STORE", "BANDOG_LEASE", "BANDOG_TICKET", "BANDOG_TOKEN", "STROE"]).is_empty());
        // What Kubernetes sets for a service called bandog.
        assert!(
            found(&["BANDOG_SERVICE_HOST", "BANDOG_PORT", "BANDOG_PORT_6379_TCP", "BANDOG_PORT_6379_TCP_ADDR"])
                .is_empty()
        );
    }
}
