//! The ways of holding, as types: they decide which methods a guard has.

mod sealed {
    pub trait Sealed {}
}

/// A way of holding a lock.
pub trait Held: sealed::Sealed + Clone + std::fmt::Debug + Send + Sync + 'static {}

macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Held for $name {}
    )+};
}

ways! {
    /// Alone, by a mutex.
    Mutual;
    /// Together with other readers.
    Reading;
    /// Alone, by a read-write lock.
    Writing;
    /// Some of a semaphore's permits.
    Permits;
}
