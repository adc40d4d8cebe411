//! The way in: what a server that turns us away says, whether strangers get in, and whether others can listen.

use std::net::IpAddr;

use bandog_core::checkup::{Check, Remark};
use bandog_core::store::{StoreError, StoreErrorKind};

use super::patient::{Barred, Patient};
use super::permissions::{PERMISSIONS, rule_line};
use super::said::Said;
use super::scripts::LOCKING;
use super::server::VERSION;
use super::words;
use crate::config::{Address, RedisConfig};
use crate::resp::{Broken, Deadline, Unopened};
use crate::topology::{Session, unreached};

pub(super) const LOGIN: Check = Check::new(
    "login",
    "whoever can read the keys of locks can release any of them, and whoever can write takes them away",
);
pub(super) const TLS: Check = Check::new(
    "tls",
    "without it the network sees the password and the secret ids that release locks, and may answer in the server's place",
);

/// What a server that let us no further is told by. Those that were not reached are an error.
pub(super) fn barred(config: &RedisConfig, barred: Barred) -> Result<Vec<Remark>, StoreError> {
    match barred {
        Barred::Unprepared(error) => Ok(vec![
            TLS.wrong(error.message).change("name files with certificates that can be read: ca=PATH in the URL"),
        ]),
        Barred::Unopened(unopened) => turned_away(config, unopened),
    }
}

fn turned_away(config: &RedisConfig, unopened: Unopened) -> Result<Vec<Remark>, StoreError> {
    let text = match &unopened.why {
        Broken::Refused(text) => text.clone(),
        _ => String::new(),
    };
    let error = unreached(config, unopened);
    let way = tls(config);
    match error.kind {
        StoreErrorKind::Unavailable => Err(error),
        StoreErrorKind::Unready => Ok(vec![way, LOCKING.wrong(error.message).change(words::remedy(&text))]),
        StoreErrorKind::Denied if text.starts_with("NOPERM") => {
            Ok(vec![way, PERMISSIONS.wrong(error.message).change(rule_line(config, &text))])
        }
        StoreErrorKind::Denied if text.is_empty() && error.message.contains(": no trust: ") => {
            Ok(vec![TLS.wrong(error.message).change("ca=PATH in the URL names the authority to trust")])
        }
        StoreErrorKind::Denied => {
            let form = "the URL takes both: redis://USER:PASSWORD@HOST (better in BANDOG_STORE than in arguments)";
            Ok(vec![LOGIN.wrong(error.message).change(form), way])
        }
        _ => Ok(vec![VERSION.wrong(error.message).change("use Redis 6.2 or later, or Valkey")]),
    }
}

pub(super) fn tls(config: &RedisConfig) -> Remark {
    match &config.address {
        Address::Tls(..) => TLS.fine("TLS; certificate and name of the server are checked"),
        Address::Unix(_) => TLS.fine("a socket of this machine"),
        Address::Tcp(host, _) if is_loopback(host) => TLS.fine("plain, and does not leave this machine"),
        Address::Tcp(host, port) => TLS
            .risky(format!("plain TCP to {host}"))
            .change(format!("rediss://{host}:{port}, and tls-port in redis.conf")),
    }
}

/// Whether somebody without a password gets in, and from where.
pub(super) async fn login(patient: &Patient<'_>, said: &Said) -> Remark {
    let config = patient.config;
    let us = config.login();
    match strangers_get_in(patient).await {
        Some(false) => LOGIN.fine(format!("a password is needed; we are {us}")),
        Some(true) => nobody_asks(config, said),
        None => LOGIN
            .unknown(format!("we are {us}; whether a password is needed could not be tried"))
            .change("see locking: a server that serves can be tried"),
    }
}

async fn strangers_get_in(patient: &Patient<'_>) -> Option<bool> {
    if patient.config.password.is_none() {
        return Some(true);
    }
    let stranger = RedisConfig { user: None, password: None, db: 0, ..patient.config.clone() };
    let endpoint = stranger.endpoint().ok()?;
    match Session::plain(&endpoint, None, &Deadline::within(patient.patience())).await {
        Ok(_) => Some(true),
        Err(Unopened { why: Broken::Refused(text), .. }) => {
            ["NOAUTH", "DENIED", "WRONGPASS"].iter().any(|word| text.starts_with(word)).then_some(false)
        }
        Err(_) => None,
    }
}

fn nobody_asks(config: &RedisConfig, said: &Said) -> Remark {
    let change = "CONFIG SET requirepass PASSWORD, and a user of its own for locks (ACL SETUSER locker on >SECRET …, docs/redis.md)";
    let far = matches!(&config.address, Address::Tcp(host, _) | Address::Tls(host, _) if !is_loopback(host));
    let protected = said.setting("protected-mode").map(|flag| flag == "yes");
    let open = match config.password {
        Some(_) => "a password was given that nobody needs",
        None => "no password is needed",
    };
    let at_home = said.setting("bind").map(|bind| !bind.is_empty() && bind.split_whitespace().all(is_loopback));
    match (far, protected, at_home) {
        (true, ..) => LOGIN.wrong(format!("{open}, also from other machines")).change(change),
        (_, Some(true), _) => LOGIN.fine(format!("{open}, and only this machine gets in (protected-mode yes)")),
        (_, _, Some(true)) => LOGIN.fine(format!("{open}, and only this machine gets in (bind)")),
        (_, Some(false), Some(false)) => {
            let bind = said.setting("bind").unwrap_or_default();
            LOGIN.wrong(format!("{open}, protected-mode is no, and bind is {bind:?}")).change(change)
        }
        _ => {
            let mut remark = said.no_setting(LOGIN);
            remark.saw = format!("{open}; whether other machines get in is not known: {}", remark.saw);
            remark
        }
    }
}

/// Whether a name or address is this machine's own. Redis puts a minus before what it may do without.
fn is_loopback(host: &str) -> bool {
    let host = host.strip_prefix('-').unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    fn at(url: &str) -> RedisConfig {
        RedisConfig::from_url(url).unwrap().0
    }

    #[test]
    fn address_of_another_machine_needs_tls() {
        for (url, fitness) in [
            ("redis://127.0.0.1", Fitness::Fine),
            ("redis://[::1]", Fitness::Fine),
            ("redis://localhost", Fitness::Fine),
            ("redis+unix:///run/redis.sock", Fitness::Fine),
            ("rediss://db.example", Fitness::Fine),
            ("redis://db.example", Fitness::Risky),
            ("redis://10.0.0.7", Fitness::Risky),
        ] {
            assert_eq!(tls(&at(url)).fitness, fitness, "{url}");
        }
    }

    #[test]
    fn a_door_without_a_password_is_judged_by_who_can_reach_it() {
        let of = |url, bind, protected| {
            nobody_asks(&at(url), &Said::of(&[], &[("bind", bind), ("protected-mode", protected)])).fitness
        };
        assert_eq!(of("redis://127.0.0.1", "127.0.0.1 -::1", "no"), Fitness::Fine);
        assert_eq!(of("redis://127.0.0.1", "* -::*", "yes"), Fitness::Fine);
        assert_eq!(of("redis://127.0.0.1", "* -::*", "no"), Fitness::Wrong);
        assert_eq!(of("redis://127.0.0.1", "", "no"), Fitness::Wrong);
        assert_eq!(of("redis://127.0.0.1", "127.0.0.1 10.0.0.7", "no"), Fitness::Wrong);
        assert_eq!(of("redis://10.0.0.7", "127.0.0.1", "yes"), Fitness::Wrong);
        assert_eq!(nobody_asks(&at("redis://localhost"), &Said::default()).fitness, Fitness::Unknown);
        let given = nobody_asks(&at("redis://ann:s3cret@localhost"), &Said::of(&[], &[("protected-mode", "yes")]));
        assert!(given.saw.starts_with("a password was given that nobody needs, and only this machine"), "{given:?}");
    }

    #[test]
    fn certificates_that_cannot_be_read_are_told() {
        let config = at("rediss://host?ca=/nowhere/ca.crt");
        let Err(error) = config.endpoint() else { panic!("a file that is not there") };
        let told = barred(&config, Barred::Unprepared(error)).unwrap();
        assert!(told[0].about == "tls" && told[0].saw.contains("/nowhere/ca.crt"), "{told:?}");
    }
}
