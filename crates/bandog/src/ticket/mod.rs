//! Tickets: a hold that outlives the process which acquired it. [`Guard::detach`] makes one; scripts and other processes keep
//! and release by it, straight at the store, past the machines.
//!
//! Invariant: nothing but [`Ticket::secret`] shows what is inside, because whoever has that can release.

mod end;

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;
use std::time::Duration;

use bandog_core::holder::{HolderId, PublicId, Secret};
use bandog_core::lease::Lease;
use bandog_core::lock::LossReason;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Parted, Release, ReleaseReply, Renew, Renewal};
use bandog_core::store::StoreError;
use bandog_core::token::Token;
use siphasher::sip::SipHasher24;

use crate::error::{Place, ReleaseError, RenewError};
use crate::guard::Guard;
use crate::held::Held;
use crate::locks::Locks;

pub use end::TicketEnd;

/// The right to keep and release a hold that no guard keeps any more. Without renewals it ends with its lease.
///
/// It is a secret: whoever has it can renew and release this one hold, and nothing else: not the next hold of this lock, and no other
/// lock of the client that made it. `Debug` shows only the public id.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Locks, Ticket};
/// let (here, there) = (Locks::connect("memory:shop").await?, Locks::connect("memory:shop").await?);
/// let secret = here.mutex("job").acquire().await?.detach().await?.secret(); // hand it over, not on a command line
///
/// let ticket: Ticket = secret.parse()?;
/// ticket.renew(&there).await?; // the whole lease lies ahead again
/// ticket.release(&there).await?;
/// assert!(here.mutex("job").try_acquire().await?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    name: LockName,
    id: HolderId,
    token: Token,
    lease: Lease,
}

impl<K: Held> Guard<K> {
    /// Gives up the guard but not the lock: the lease is renewed once more, and from then on whoever has the ticket keeps
    /// and releases it. Without renewals it ends with its lease.
    ///
    /// # Errors
    /// As [`renew`](Self::renew); also when the guard was entered more than once. The lock is released then.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::connect("memory:").await?;
    /// let ticket = locks.mutex("job").acquire().await?.detach().await?;
    /// assert!(locks.mutex("job").try_acquire().await?.is_none(), "still held");
    /// ticket.release(&locks).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn detach(self) -> Result<Ticket, RenewError> {
        let place = self.as_hold().place();
        if self.depth() > 1 {
            return Err(RenewError::Reentered { place, doing: "detached" });
        }
        self.renew().await?;
        let (name, token, lease) = (place.lock.clone(), self.token(), self.as_hold().lease());
        let unanswered = || StoreError::unknown("its claim is not answered yet");
        match (self.leave_behind(), lease) {
            (Some(id), Some(lease)) => Ok(Ticket { name, id, token, lease }),
            _ => Err(RenewError::Store { place, doing: "detached", source: unanswered() }),
        }
    }
}

impl Ticket {
    /// The lock name.
    ///
    /// ```
    /// # fn show(ticket: &bandog::Ticket) {
    /// println!("a ticket for {}", ticket.name());
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The fencing token of the hold.
    ///
    /// ```
    /// # fn show(ticket: &bandog::Ticket) {
    /// println!("UPDATE job SET fence = {0} WHERE fence <= {0}", ticket.token());
    /// # }
    /// ```
    pub fn token(&self) -> Token {
        self.token
    }

    /// The id under which people see the holder.
    ///
    /// ```
    /// # fn show(ticket: &bandog::Ticket) {
    /// println!("held by {}", ticket.holder());
    /// # }
    /// ```
    pub fn holder(&self) -> PublicId {
        self.id.public()
    }

    /// How long the hold lasts from its last renewal.
    ///
    /// ```
    /// # fn show(ticket: &bandog::Ticket) {
    /// println!("renew it within {:?}", ticket.lease());
    /// # }
    /// ```
    pub fn lease(&self) -> Duration {
        self.lease.length()
    }

    /// Starts the lease anew and says how long it is.
    ///
    /// # Errors
    /// [`RenewError::Over`] when the hold has ended, [`RenewError::Lost`] when it was revoked, [`RenewError::Store`] when the store gave no answer.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop a renewal that was sent.
    ///
    /// ```
    /// # async fn keep(ticket: &bandog::Ticket, locks: &bandog::Locks) -> Result<(), bandog::RenewError> {
    /// let left = ticket.renew(locks).await?;
    /// # Ok(()) }
    /// ```
    pub async fn renew(&self, locks: &Locks) -> Result<Duration, RenewError> {
        let (place, doing) = (self.place(locks), "renewed");
        let op = Op::Renew(Renew::new(self.id, self.lease));
        let lost = |reason| Err(RenewError::Lost { place: place.clone(), doing, reason });
        match self.ask(locks, op).await {
            Ok(Body::Renewal(Renewal::Renewed { remaining, .. })) => Ok(remaining),
            Ok(Body::Renewal(Renewal::Revoked { reason, .. })) => lost(LossReason::Revoked(reason.into())),
            Ok(_) => Err(RenewError::Over { place, doing, end: TicketEnd::of(self, locks).await }),
            Err(source) => Err(RenewError::Store { place, doing, source }),
        }
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// [`ReleaseError::Over`] when the hold had ended before: unless it was released, the work under it may have overlapped with
    /// another's; [`ReleaseError::Lost`] when it was revoked; [`ReleaseError::Store`] when the store gave no answer: trying again is safe.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop a release that was sent.
    ///
    /// ```
    /// # async fn end(ticket: &bandog::Ticket, locks: &bandog::Locks) -> Result<(), bandog::ReleaseError> {
    /// ticket.release(locks).await?;
    /// # Ok(()) }
    /// ```
    pub async fn release(&self, locks: &Locks) -> Result<(), ReleaseError> {
        let place = self.place(locks);
        let op = Op::Release(Release { id: self.id, not_after: None, again: None });
        match self.ask(locks, op).await {
            Ok(Body::Release(ReleaseReply { parted: Parted::Hold, .. })) => Ok(()),
            Ok(Body::Release(ReleaseReply { parted: Parted::Revoked { reason }, .. })) => {
                Err(ReleaseError::Lost { place, reason: LossReason::Revoked(reason.into()) })
            }
            Ok(_) => Err(ReleaseError::Over { place, end: TicketEnd::of(self, locks).await }),
            Err(source) => Err(ReleaseError::Store { place, source }),
        }
    }

    /// The ticket as text, to be read back with [`str::parse`]. Keep it out of logs and argument lists.
    ///
    /// ```
    /// # fn pass_on(ticket: &bandog::Ticket) -> Result<(), bandog::TicketError> {
    /// let text = ticket.secret();
    /// let same: bandog::Ticket = text.parse()?;
    /// # Ok(()) }
    /// ```
    pub fn secret(&self) -> String {
        let mut bytes = self.id.secret.to_bits().to_be_bytes().to_vec();
        bytes.extend(self.id.number.to_be_bytes());
        bytes.extend(u64::from(self.token).to_be_bytes());
        bytes.extend(millis(self.lease).to_be_bytes());
        bytes.extend(self.name.as_str().as_bytes());
        bytes.extend(checksum(&bytes));
        bytes.iter().fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }

    async fn ask(&self, locks: &Locks, op: Op) -> Result<Body, StoreError> {
        let reply = locks.handle.ask(&locks.handle.store, self.name.clone(), op).await?;
        Ok(reply.body)
    }

    fn place(&self, locks: &Locks) -> Place {
        Place { lock: self.name.clone(), store: locks.handle.store.to_string().into() }
    }
}

const PREFIX: &str = "bandog1-";
const SUM: usize = 4;

fn millis(lease: Lease) -> u64 {
    u64::try_from(lease.length().as_millis()).unwrap_or(u64::MAX)
}

// Against slips of the hand, such as half a ticket pasted; it protects nothing.
fn checksum(bytes: &[u8]) -> [u8; SUM] {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    [a, b, c, d]
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(TicketError::NoTicket)?;
        let bytes = unhex(digits).ok_or(TicketError::Damaged)?;
        let (body, sum) = bytes.split_last_chunk::<SUM>().ok_or(TicketError::Damaged)?;
        if checksum(body) != *sum {
            return Err(TicketError::Damaged);
        }
        read(body).ok_or(TicketError::Damaged)
    }
}

pub(crate) fn read(body: &[u8]) -> Option<Ticket> {
    let (secret, rest) = body.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (token, rest) = rest.split_first_chunk()?;
    let (lease, name) = rest.split_first_chunk()?;
    let secret = Secret::from_bits(u128::from_be_bytes(*secret));
    Some(Ticket {
        name: LockName::new(std::str::from_utf8(name).ok()?).ok()?,
        id: HolderId { secret, number: u64::from_be_bytes(*number) },
        token: Token::from_u64(u64::from_be_bytes(*token)),
        lease: Lease::new(Duration::from_millis(u64::from_be_bytes(*lease))).ok()?,
    })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?}, {}, {:?})", self.name, self.holder(), self.token)
    }
}

/// Why a text is no ticket. It never repeats the text: that may be a secret all the same.
///
/// ```
/// let error = "hello".parse::<bandog::Ticket>().unwrap_err();
/// assert_eq!(error, bandog::TicketError::NoTicket);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// It does not start as tickets do.
    #[error("this is no ticket: tickets start with {PREFIX:?}")]
    NoTicket,
    /// Some of it is missing or changed.
    #[error("this ticket is damaged: a part is missing or was changed; use the text exactly as it was printed")]
    Damaged,
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test]
    async fn ticket_releases_no_other_hold_of_its_client_whatever_is_changed_in_it() {
        let here = Locks::connect("memory:tickets").await.unwrap();
        let there = Locks::connect("memory:tickets").await.unwrap();
        let other = here.mutex("other").acquire().await.unwrap();
        let ticket = here.mutex("job").acquire().await.unwrap().detach().await.unwrap();
        let next = here.mutex("next").acquire().await.unwrap().detach().await.unwrap();
        // Also with the number of the other claim, which its push has shown, and with every small one.
        let numbers = (0..1_000).chain([next.id.number]);
        for (name, number) in numbers.flat_map(|number| [("other", number), ("next", number), ("job", number)]) {
            let id = HolderId { number, ..ticket.id };
            let forged = Ticket { name: LockName::new(name).unwrap(), id, ..ticket.clone() };
            let forged: Ticket = forged.secret().parse().unwrap();
            assert_eq!(forged.release(&there).await.unwrap_err().kind(), ErrorKind::Lost, "{name}");
            assert_eq!(forged.renew(&there).await.unwrap_err().kind(), ErrorKind::Lost, "{name}");
        }
        assert!(other.is_held());
        next.release(&there).await.unwrap();
        ticket.release(&there).await.unwrap();
    }
}
