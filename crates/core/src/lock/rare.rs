//! What hardly any hold has, apart from it: very many holds do not carry the room for it.

use crate::time::LeaseTime;
use crate::token::Token;

use super::LossReason;
use super::hold::Hold;
use super::round::Care;

#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Why it is lost.
    pub(super) loss: Option<LossReason>,
    /// Whether the store has said that it was revoked and has ended: there is nothing to release.
    pub(super) ended: bool,
    pub(super) care: Option<Care>,
    /// Not-after of an acquire whose answer is still out: a push overtook it.
    unanswered: Option<LeaseTime>,
    /// The token that its guard was given first, if it was exchanged or taken again since. It has no other guard after that.
    origin: Option<Token>,
}

impl Rare {
    /// Of a claim whose answer is still out.
    pub(super) fn unanswered(not_after: LeaseTime) -> Box<Self> {
        Box::new(Self { unanswered: Some(not_after), ..Self::default() })
    }

    fn is_common(&self) -> bool {
        let Self { loss, ended, care, unanswered, origin } = self;
        loss.is_none() && !ended && care.is_none() && unanswered.is_none() && origin.is_none()
    }
}

impl Hold {
    pub(super) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Why it was lost, if that was told.
    pub(super) fn loss(&self) -> Option<&LossReason> {
        self.rare.as_ref()?.loss.as_ref()
    }

    /// Whether it was not told that it is lost.
    pub(super) fn is_live(&self) -> bool {
        self.loss().is_none()
    }

    /// Whether the store has nothing of it that could be released: it does not know it, or it was released already.
    pub(super) fn left_nothing(&self) -> bool {
        let ended = |rare: &Rare| rare.ended || matches!(rare.loss, Some(LossReason::Gone | LossReason::Shutdown));
        self.rare.as_deref().is_some_and(ended)
    }

    pub(super) fn care(&self) -> Option<&Care> {
        self.rare.as_ref()?.care.as_ref()
    }

    pub(super) fn care_mut(&mut self) -> Option<&mut Care> {
        self.rare.as_mut()?.care.as_mut()
    }

    pub(super) fn take_care(&mut self) -> Option<Care> {
        self.rare.as_mut()?.care.take()
    }

    pub(super) fn unanswered(&self) -> Option<LeaseTime> {
        self.rare.as_ref()?.unanswered
    }

    /// The token that its guard was given first; it may have been exchanged or taken again since.
    pub(super) fn origin(&self) -> Token {
        self.rare.as_ref().and_then(|rare| rare.origin).unwrap_or_else(|| self.token())
    }

    /// Whether its guard was given this token.
    #[inline]
    pub(super) fn is_of(&self, token: Token) -> bool {
        let latest = self.token();
        match &self.rare {
            None => token == latest,
            Some(_) => self.origin() <= token && token <= latest,
        }
    }

    /// Its guard keeps the token that it was given, whatever the hold has from now on.
    pub(super) fn keep_origin(&mut self, origin: Token) {
        self.rare_mut().origin = Some(origin);
    }

    /// The answer to its acquire is there.
    pub(super) fn note_answered(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.unanswered = None;
            self.rare.take_if(|rare| rare.is_common());
        }
    }

    pub(super) fn set_care(&mut self, care: Option<Care>) {
        if care.is_some() || self.rare.is_some() {
            self.rare_mut().care = care;
            self.rare.take_if(|rare| rare.is_common());
        }
    }

    /// A new guard comes: the token that another was given counts no more.
    pub(super) fn forget_origin(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.origin = None;
        }
    }
}
