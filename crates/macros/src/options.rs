//! What stands in the parentheses of `#[locked(…)]`: the lock name, then options.

use std::time::Duration;

use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, Lit, LitStr, Result, Token};

use crate::values;

/// The attribute, read and checked.
pub(crate) struct Options {
    pub(crate) name: LitStr,
    pub(crate) locks: Option<Expr>,
    pub(crate) wait: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) renew_at: Option<(u32, u32)>,
    pub(crate) max_renewals: Option<u32>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) at_least: Option<Duration>,
    pub(crate) fair: bool,
    pub(crate) shared: bool,
    pub(crate) on_busy: OnBusy,
    pub(crate) default: Option<Expr>,
    pub(crate) hold: Option<Ident>,
}

/// What to do when the lock is not to be had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBusy {
    Fail,
    Skip,
}

const KNOWN: &str = "`locks`, `wait`, `lease`, `renew_at`, `max_renewals`, `max_hold`, `at_least`, `fair`, `shared`, `on_busy`, \
                     `default`, `hold`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(LitStr) {
            let advice = "the lock name comes first, in quotes: `#[locked(\"order:{id}\")]`";
            return Err(Error::new(input.span(), advice));
        }
        let mut options = Self::named(input.parse()?);
        let mut seen: Vec<Ident> = Vec::new();
        let mut default = None;
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let option = Setting::parse(input)?;
            if seen.contains(&option.key) {
                return Err(Error::new(option.key.span(), format!("`{}` is given twice", option.key)));
            }
            seen.push(option.key.clone());
            if option.key == "default" {
                default = Some(option.key.span());
            }
            options.set(option)?;
        }
        match default {
            Some(at) if options.on_busy == OnBusy::Fail => {
                Err(Error::new(at, "`default` is what a skipped function returns: it needs `on_busy = \"skip\"`"))
            }
            _ => Ok(options),
        }
    }
}

/// `key = value`, or `key` alone.
struct Setting {
    key: Ident,
    value: Option<Expr>,
}

impl Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        use syn::ext::IdentExt;
        // `default` is a word of the language in some places.
        let mut key = Ident::parse_any(input)?;
        if key == "lock_at_least" {
            // As it is called on a request.
            key = Ident::new("at_least", key.span());
        }
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { key, value })
    }

    fn value(&self) -> Result<&Expr> {
        let missing = || Error::new(self.key.span(), format!("`{0}` needs a value: `{0} = …`", self.key));
        self.value.as_ref().ok_or_else(missing)
    }

    fn flag(&self) -> Result<bool> {
        self.value.as_ref().map_or(Ok(true), |value| values::yes_no(&self.key.to_string(), value))
    }
}

impl Options {
    fn named(name: LitStr) -> Self {
        Self {
            name,
            locks: None,
            wait: None,
            lease: None,
            renew_at: None,
            max_renewals: None,
            max_hold: None,
            at_least: None,
            fair: false,
            shared: false,
            on_busy: OnBusy::Fail,
            default: None,
            hold: None,
        }
    }

    fn set(&mut self, option: Setting) -> Result<()> {
        let key = option.key.to_string();
        match key.as_str() {
            "locks" => self.locks = Some(option.value()?.clone()),
            "wait" => self.wait = Some(values::duration(&key, option.value()?)?),
            "lease" => self.lease = Some(values::lease(option.value()?)?),
            "renew_at" => self.renew_at = Some(values::share(&key, option.value()?)?),
            "max_renewals" => self.max_renewals = Some(values::number(&key, option.value()?)?),
            "max_hold" => self.max_hold = Some(values::some_time(&key, option.value()?)?),
            "at_least" => self.at_least = Some(values::duration(&key, option.value()?)?),
            "fair" => self.fair = option.flag()?,
            "shared" => self.shared = option.flag()?,
            "on_busy" => self.on_busy = on_busy(option.value()?)?,
            "default" => self.default = Some(option.value()?.clone()),
            "hold" => self.hold = Some(name(option.value()?)?),
            _ => return Err(Error::new(option.key.span(), format!("there is no option `{key}`; there are {KNOWN}"))),
        }
        Ok(())
    }
}

fn on_busy(value: &Expr) -> Result<OnBusy> {
    match values::literal(value) {
        Some(Lit::Str(text)) if text.value() == "fail" => Ok(OnBusy::Fail),
        Some(Lit::Str(text)) if text.value() == "skip" => Ok(OnBusy::Skip),
        _ => Err(Error::new(value.span(), "`on_busy` is \"fail\" or \"skip\"")),
    }
}

fn name(value: &Expr) -> Result<Ident> {
    let wrong = || Error::new(value.span(), "`hold` names the variable that is the hold in the body: `hold = hold`");
    match value {
        Expr::Path(path) => path.path.get_ident().cloned().ok_or_else(wrong),
        _ => Err(wrong()),
    }
}
