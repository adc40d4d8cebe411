//! The query of a store URL, for options in it that the command line has a say in.

/// Takes every `option` out of the query: the URL without it, and the last value given. `None` if it is not there.
pub(crate) fn take(url: &str, option: &str) -> Option<(String, String)> {
    let (address, query) = url.split_once('?')?;
    let is_it = |pair: &&str| pair.split('=').next() == Some(option);
    let (taken, kept): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_it);
    let value = taken.last()?.split_once('=').map_or("", |(_, value)| value);
    let rest = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
    Some((rest, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_taken_out_and_the_rest_stays() {
        let taken = |url| take(url, "label").map(|(url, value)| format!("{url} {value}"));
        assert_eq!(taken("sqlite:x?lease=3s&label=a&fair=true").as_deref(), Some("sqlite:x?lease=3s&fair=true a"));
        assert_eq!(taken("sqlite:x?label=a&label=b=c").as_deref(), Some("sqlite:x b=c"));
        assert_eq!(taken("sqlite:x?labels=a"), None);
        assert_eq!(taken("sqlite:label"), None);
    }
}
