//! HTTP access to a port of a sandbox: addresses, forwarding, pages.
//!
//! A *preview* is a port of a sandbox seen from a browser. This crate parses the address of a preview, forwards a request
//! and its response, and renders a page when it cannot. It does not know the service: the caller finds the sandbox,
//! wakes it, checks tokens and implements [`Dial`] for the port.
//!
//! - [`address`]: which sandbox and port a request wants; [`url`]: the same backwards
//! - [`access`]: how a private preview is opened with a token
//! - [`forward()`]: one request to the port and its response back, streamed, with upgrades
//! - [`inert`]: answers of a sandbox on a host it shares with the API, made harmless
//! - [`pages`]: what is shown when nothing can be
//! - [`names`]: every header, cookie and query parameter that is ours
//!
//! # Origins
//!
//! In the *host form* every preview is an origin of its own and the browser keeps them apart. In the *path form* all
//! previews, the API and the dashboard share one origin: without a defence a hostile page could read its neighbours
//! and call the API with whatever authority the browser has, which on an open loopback listener is all of it. So
//! responses in the path form carry `Content-Security-Policy: sandbox` without `allow-same-origin`
//! ([`target::Isolation`]): the page gets an opaque origin, has no cookies or storage to read, and its requests say
//! `Origin: null`. **The server of the API must refuse requests with `Origin: null`, with a foreign `Origin`, or with
//! `Sec-Fetch-Site: cross-site` or `same-site`.** The price: pages that use `fetch` or module scripts on themselves do
//! not work in the path form. The host form is the one to hand out; `*.localhost` needs no DNS.
#![forbid(unsafe_code)]

pub mod access;
pub mod address;
pub mod inert;
pub mod names;
pub mod pages;
pub mod target;
pub mod url;

mod body;
mod cookie;
mod dial;
mod error;
mod forward;
mod gate;
mod hop;
mod problem;
mod query;
mod request;
mod response;
mod splice;
mod wait;

pub use access::{Access, Denial, RequestContext, Via};
pub use address::{Domains, PreviewAddress, PreviewForm};
pub use body::{BoxError, PreviewBody};
pub use dial::{Dial, DialError, Dialled};
pub use error::ForwardError;
pub use forward::forward;
pub use pages::Page;
pub use problem::Problem;
pub use target::{AuthorizationHeader, ForwardLimits, HostHeader, Isolation, Scheme, Target};
pub use url::{UrlForm, url_for};
