//! The stable words of signals: what events, metric labels and tracing fields call a check, a strategy, a connection.

use std::fmt;

use bandog_core::mode::Mode;

macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ } $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(clippy::exhaustive_enums, reason = "one word per variant, and all are listed in docs/metrics.md")]
        $vis enum $name {
            $($(#[$each])* $variant,)+
        }

        impl $name {
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];
            #[allow(dead_code, reason = "not every set of words is walked through")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its stable word, as in metric labels.
            ///
            /// ```
            #[doc = $example]
            /// ```
            $vis fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What the watchdog looks at.
    ///
    /// ```
    /// println!("the {} check found something", bandog::Check::Record);
    /// ```
    pub enum Check {
        /// Whether holds are renewed in time, and the thread that does it is alive.
        Renewal = "renewal",
        /// Whether the store's record agrees with what is believed here.
        Record = "record",
        /// Whether whoever holds is alive and gets on.
        Holder = "holder",
        /// Whether the store can be reached.
        Connection = "connection",
        /// Whether what was put right stayed right.
        Recovery = "recovery",
    }
    "assert_eq!(bandog::Check::Record.as_str(), \"record\");"
}

words! {
    /// What is done about a hold that is lost, or a part of the client that fails.
    ///
    /// ```
    /// println!("tried to {}", bandog::Strategy::Reacquire);
    /// ```
    pub enum Strategy {
        /// The guard was told.
        Notify = "notify",
        /// Released in the store at once.
        Release = "release",
        /// Acquired again, with proof that nobody held it in between.
        Reacquire = "reacquire",
        /// A part of the client was started anew.
        Repair = "repair",
    }
    "assert_eq!(bandog::Strategy::Repair.as_str(), \"repair\");"
}

words! {
    /// Where an error came up.
    pub(crate) enum Phase {
        Acquire = "acquire",
        Renew = "renew",
        Release = "release",
        News = "news",
    }
    ""
}

words! {
    /// One of a client's ways to its store.
    pub(crate) enum Link {
        Claims = "claims",
        Renewals = "renewals",
        Inbox = "inbox",
    }
    ""
}

pub(crate) const MODES: &[&str] = &["exclusive", "shared", "permits"];

pub(crate) fn mode_word(mode: Mode) -> &'static str {
    MODES[mode_index(mode)]
}

pub(super) fn mode_index(mode: Mode) -> usize {
    match mode {
        Mode::Exclusive => 0,
        Mode::Shared => 1,
        Mode::Permits { .. } => 2,
    }
}
