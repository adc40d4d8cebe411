//! The ways of holding, as types: they decide which methods a guard has.

mod sealed {
    pub trait Sealed {}
}

/// A way of holding a lock.
///
/// ```
/// fn note<K: bandog::Held>(guard: &bandog::Guard<K>) {
///     println!("{} under token {}", guard.name(), guard.token());
/// }
/// ```
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
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard: bandog::Guard<bandog::Mutual> = locks.mutex("job").acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    Mutual;
    /// Together with other readers.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard: bandog::Guard<bandog::Reading> = locks.rwlock("cfg").read().acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    Reading;
    /// Alone, by a read-write lock.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard: bandog::Guard<bandog::Writing> = locks.rwlock("cfg").write().acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    Writing;
    /// Some of a semaphore's permits.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let guard: bandog::Guard<bandog::Permits> = locks.semaphore("gpu", 4).acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    Permits;
}
