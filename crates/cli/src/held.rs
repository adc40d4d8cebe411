//! A lock that the command holds, whatever its kind, and the request that gets it.

use std::time::Duration;

use bandog::{
    AcquireError, Guard, Hold, Locks, Mutex, PermitGuard, Read, ReadGuard, ReleaseError, RenewError, Semaphore, Ticket,
};

use crate::args::LockArgs;

/// The guard.
#[derive(Debug)]
pub(crate) enum Held {
    Alone(Guard),
    Shared(ReadGuard),
    Permits(PermitGuard),
}

impl Held {
    pub(crate) fn hold(&self) -> Hold {
        match self {
            Self::Alone(guard) => guard.hold(),
            Self::Shared(guard) => guard.hold(),
            Self::Permits(guard) => guard.hold(),
        }
    }

    pub(crate) async fn renew(&self) -> Result<(), RenewError> {
        match self {
            Self::Alone(guard) => guard.renew().await,
            Self::Shared(guard) => guard.renew().await,
            Self::Permits(guard) => guard.renew().await,
        }
    }

    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Alone(guard) => guard.release().await,
            Self::Shared(guard) => guard.release().await,
            Self::Permits(guard) => guard.release().await,
        }
    }

    pub(crate) async fn detach(self) -> Result<Ticket, RenewError> {
        match self {
            Self::Alone(guard) => guard.detach().await,
            Self::Shared(guard) => guard.detach().await,
            Self::Permits(guard) => guard.detach().await,
        }
    }
}

/// The request.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Alone(Mutex),
    Shared(Read),
    Permits(Semaphore),
}

macro_rules! each {
    ($request:expr, $one:ident => $change:expr) => {
        match $request {
            Self::Alone($one) => Self::Alone($change),
            Self::Shared($one) => Self::Shared($change),
            Self::Permits($one) => Self::Permits($change),
        }
    };
}

impl Request {
    /// What the arguments ask for; what they leave out is up to the client's defaults.
    pub(crate) fn new(locks: &Locks, args: &LockArgs) -> Self {
        let mut request = match (args.of, args.shared) {
            (Some(of), _) => Self::Permits(locks.semaphore(&args.name, of).permits(args.permits.unwrap_or(1))),
            (None, true) => Self::Shared(locks.rwlock(&args.name).read()),
            (None, false) => Self::Alone(locks.mutex(&args.name)),
        };
        if let Some(wait) = args.wait {
            request = each!(request, one => one.wait(wait));
        }
        if let Some(lease) = args.lease {
            request = each!(request, one => one.lease(lease));
        }
        if args.fair {
            request = each!(request, one => one.fair());
        }
        request
    }

    /// Without a wait.
    pub(crate) fn at_once(self) -> Self {
        each!(self, one => one.wait(Duration::ZERO))
    }

    /// Never renewed by itself: for tickets, whose holder renews them.
    pub(crate) fn fixed(self) -> Self {
        each!(self, one => one.max_renewals(0))
    }

    pub(crate) async fn acquire(&self) -> Result<Held, AcquireError> {
        Ok(match self {
            Self::Alone(request) => Held::Alone(request.acquire().await?),
            Self::Shared(request) => Held::Shared(request.acquire().await?),
            Self::Permits(request) => Held::Permits(request.acquire().await?),
        })
    }

    /// Without waiting: `None` when it is busy.
    pub(crate) async fn try_acquire(&self) -> Result<Option<Held>, AcquireError> {
        Ok(match self {
            Self::Alone(request) => request.try_acquire().await?.map(Held::Alone),
            Self::Shared(request) => request.try_acquire().await?.map(Held::Shared),
            Self::Permits(request) => request.try_acquire().await?.map(Held::Permits),
        })
    }
}
