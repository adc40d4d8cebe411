//! The hot paths: what a lock does at every acquire, release, hand-off and renewal. No network, no clock, no second thread.

mod codec;
mod ledger;
mod library;
mod machine;
mod requests;

/// Something that is done so often that ten more instructions in a hundred would be felt.
pub(crate) struct HotPath {
    /// Its name in the table and in the baseline.
    pub(crate) name: &'static str,
    /// Plays it, inside and outside the counted region.
    pub(crate) play: fn(),
}

/// All of them.
pub(crate) const ALL: [HotPath; 19] = [
    HotPath { name: "ledger: claim granted, released", play: ledger::pair },
    HotPath { name: "ledger: claim queued, handed off", play: ledger::hand_off },
    HotPath { name: "ledger: renewal", play: ledger::renewal },
    HotPath { name: "machine: acquire, release", play: machine::pair },
    HotPath { name: "machine: re-entry", play: machine::re_entry },
    HotPath { name: "machine: local hand-off", play: machine::hand_off },
    HotPath { name: "machine: queued, grant pushed", play: machine::pushed },
    HotPath { name: "machine: renewal, of 1,000 holds", play: machine::renewal },
    HotPath { name: "codec: claim and grant", play: codec::claim },
    HotPath { name: "codec: claim and place in line", play: codec::queued },
    HotPath { name: "codec: release and answer", play: codec::release },
    HotPath { name: "codec: renewal and answer", play: codec::renewal },
    HotPath { name: "codec: grant pushed", play: codec::pushed },
    HotPath { name: "codec: 32 claims in one call", play: codec::tied },
    HotPath { name: "library: acquire, release", play: library::pair },
    HotPath { name: "library: re-entry", play: library::re_entry },
    HotPath { name: "library: local hand-off", play: library::hand_off },
    HotPath { name: "library: hand-off between clients", play: library::between_clients },
    HotPath { name: "library: held? and token", play: library::look },
];

#[cfg(test)]
mod tests {
    use super::*;

    // Whether each does what it says, without valgrind: they check themselves.
    #[test]
    fn every_hot_path_can_be_played() {
        ALL.iter().for_each(|path| (path.play)());
    }
}
