//! The function around its body: a request is built, the body runs as a closure under it, and what came of it becomes what
//! the function returns.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{AttrStyle, Error, Ident, ItemFn, Result, ReturnType, Signature, Type, TypeParamBound, parse_quote};

use crate::arguments::Arguments;
use crate::options::{OnBusy, Options};
use crate::{template, values};

pub(crate) fn expand(options: &Options, function: ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let output = output(&sig)?;
    let request = request(options, &sig)?;
    let body = body(options, &sig, &output, &block);
    let ended = ended(options, &sig, &output)?;
    let (inner, outer): (Vec<_>, Vec<_>) =
        attrs.into_iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let wanted = Ident::new("wanted", Span::mixed_site());
    let run = if sig.asyncness.is_some() {
        quote_spanned!(Span::mixed_site()=> ::bandog::__private::run(#wanted, #body).await)
    } else {
        quote_spanned!(Span::mixed_site()=> ::bandog::__private::run_blocking(#wanted, #body))
    };
    let ended = ended(run);
    Ok(quote! {
        #(#outer)* #vis #sig {
            #(#inner)*
            let #wanted = #request;
            #ended
        }
    })
}

/// What the function returns, if that is something a lock can be around.
fn output(signature: &Signature) -> Result<Type> {
    if let Some(word) = &signature.constness {
        return Err(Error::new(word.span(), "a `const fn` cannot have a lock: there is no store at compile time"));
    }
    match &signature.output {
        ReturnType::Default => Ok(parse_quote!(())),
        ReturnType::Type(_, output) if signature.asyncness.is_none() && is_future(output) => {
            let advice = "the lock would be released before it runs; write an `async fn`";
            Err(Error::new(output.span(), format!("this function returns a future, and {advice}")))
        }
        ReturnType::Type(_, output) => Ok((**output).clone()),
    }
}

fn is_future(output: &Type) -> bool {
    struct Futures(bool);
    impl VisitMut for Futures {
        fn visit_type_param_bound_mut(&mut self, bound: &mut TypeParamBound) {
            if let TypeParamBound::Trait(bound) = bound {
                self.0 |= bound.path.segments.last().is_some_and(|last| last.ident == "Future");
            }
        }
    }
    let mut futures = Futures(false);
    futures.visit_type_mut(&mut output.clone());
    futures.0
}

fn request(options: &Options, signature: &Signature) -> Result<TokenStream> {
    let arguments = Arguments::of(signature);
    let name = template::name(&options.name, &arguments)?;
    let locks = locks(options, signature, &arguments)?;
    let kind = Ident::new(if options.shared { "shared" } else { "mutex" }, Span::mixed_site());
    let mut request = quote_spanned!(locks.span()=> ::bandog::__private::#kind(&#locks, #name));
    let mut set = |setter: &str, value: Option<TokenStream>| {
        if let Some(value) = value {
            let setter = Ident::new(setter, Span::mixed_site());
            request.extend(quote!(.#setter(#value)));
        }
    };
    set("wait", options.wait.map(values::quoted));
    set("lease", options.lease.map(values::quoted));
    set("renew_at", options.renew_at.map(|(num, den)| quote!(#num, #den)));
    set("max_renewals", options.max_renewals.map(ToTokens::into_token_stream));
    set("max_hold", options.max_hold.map(values::quoted));
    set("lock_at_least", options.at_least.map(values::quoted));
    set("fair", options.fair.then(TokenStream::new));
    Ok(request)
}

fn locks(options: &Options, signature: &Signature, arguments: &Arguments) -> Result<TokenStream> {
    if let Some(locks) = &options.locks {
        return Ok(quote_spanned!(locks.span()=> (#locks)));
    }
    let named = Ident::new("locks", signature.ident.span());
    if arguments.has(&named) {
        // Where the argument stands, so that a wrong type is shown there.
        let typed = signature.inputs.iter().find(|input| Arguments::binds(input, &named));
        let named =
            Ident::new("locks", Span::call_site().located_at(typed.map_or_else(|| named.span(), Spanned::span)));
        return Ok(quote!(#named));
    }
    let advice = if arguments.has(&Ident::new("self", Span::call_site())) {
        "write `locks = self.locks`, or whatever has it, or take an argument `locks: &Locks`"
    } else {
        "take an argument `locks: &Locks`, or write `locks = …`, an expression that is one"
    };
    Err(Error::new(signature.ident.span(), format!("which `Locks` is the lock of? {advice}")))
}

fn body(options: &Options, signature: &Signature, output: &Type, block: &syn::Block) -> TokenStream {
    let mut output = output.clone();
    Unnamed.visit_type_mut(&mut output);
    let hold = match &options.hold {
        Some(hold) => quote!(#hold: ::bandog::Hold),
        None => quote!(_),
    };
    let asyncness = signature.asyncness.map(|word| quote!(#word));
    quote!(#asyncness move |#hold| -> #output #block)
}

/// A closure cannot name what is only known by its traits; it need not.
struct Unnamed;

impl VisitMut for Unnamed {
    fn visit_type_mut(&mut self, node: &mut Type) {
        if matches!(node, Type::ImplTrait(_)) {
            *node = parse_quote!(_);
        } else {
            visit_mut::visit_type_mut(self, node);
        }
    }
}

/// What becomes of the outcome. Spoken from where the return type stands, because that decides.
fn ended(
    options: &Options,
    signature: &Signature,
    output: &Type,
) -> Result<impl FnOnce(TokenStream) -> TokenStream + use<>> {
    let (at, name) = match &signature.output {
        ReturnType::Default => (signature.ident.span(), None),
        ReturnType::Type(_, _) => (output.span(), last_segment(output)),
    };
    let returns_nothing = matches!(signature.output, ReturnType::Default);
    let finish = match (options.on_busy, &options.default) {
        (OnBusy::Fail, _) if returns_nothing => {
            let advice =
                "write `-> Result<(), E>` with `E: From<bandog::RunError>`, or `on_busy = \"skip\", default = ()`";
            return Err(Error::new(
                at,
                format!("this function returns no `Result`, but its lock may be busy or lost: {advice}"),
            ));
        }
        (OnBusy::Skip, None) if !matches!(name.as_deref(), Some("Option" | "Result")) => {
            let advice = "write `Option<T>` or `Result<Option<T>, E>`, or say what to return: `default = …`";
            return Err(Error::new(
                at,
                format!("with `on_busy = \"skip\"` there must be something to return: {advice}"),
            ));
        }
        (OnBusy::Fail, _) => "or_fail",
        (OnBusy::Skip, None) => "or_none",
        (OnBusy::Skip, Some(_)) if name.as_deref() == Some("Result") => "or_ok",
        (OnBusy::Skip, Some(_)) => "or_default",
    };
    let finish = Ident::new(finish, Span::mixed_site());
    let default = options.default.as_ref().map(|default| quote!(, || #default));
    let at = Span::mixed_site().located_at(at);
    Ok(move |run| quote_spanned!(at=> ::bandog::__private::#finish(#run #default)))
}

fn last_segment(output: &Type) -> Option<String> {
    match output {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Paren(inner) => last_segment(&inner.elem),
        Type::Group(inner) => last_segment(&inner.elem),
        _ => None,
    }
}
