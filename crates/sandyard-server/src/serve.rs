//! The server from its settings to its end.
//!
//! ```text
//! sockets ─▶ store ─▶ gateway, providers ─▶ authentication, first key ─▶ timers, node, service ─▶ requests
//!                                                                                                 │ signal
//!            store closed ◀── activity and audit written ◀── streams ended, requests done ◀─────────┘
//! ```
//!
//! Sandboxes are started by no server and end with none.

mod data_dir_name;
mod e2b;
mod logging;
mod providers;
mod sealing_key;
mod settings;
mod signals;
mod started;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandyard_auth::{Auth, AuthError};
use sandyard_config::{Settings, check_binding};
use sandyard_core::Clock;
use sandyard_provider::{Provider, ProviderError};
use sandyard_providers::Registry;
use sandyard_service::{NodeSetup, Service, ServiceError};
use sandyard_store::{Store, StoreError, Timers};
use sandyard_tls::files;
use tokio_util::sync::CancellationToken;

pub use logging::{LogError, init_logging};
pub use providers::connect as connect_providers;
pub use sealing_key::{SEALING_KEY_FILE, SealingKeyError};
pub use signals::Signals;
pub use started::{Address, Started};

use crate::app::{App, ServerSettings};
use crate::listen::{self, BindError, Bound, CertificateError, Listeners, TlsConfig};
use crate::{internal, router};
use settings as convert;

/// Where the first admin's key is kept, below the data directory.
pub const ADMIN_KEY_FILE: &str = "admin.key";

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could use it.
    #[error("{0}")]
    Binding(Box<sandyard_config::Problem>),
    /// The data directory cannot be made or written to.
    #[error("cannot use `{path}`")]
    DataDir {
        /// Path of the file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// There is no key to seal secrets with.
    #[error(transparent)]
    SealingKey(#[from] SealingKeyError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There is no good certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The database cannot be used.
    #[error("cannot open the database")]
    Store(#[source] StoreError),
    /// The queue of timers cannot be used.
    #[error("cannot open the queue of timers")]
    Timers(#[source] StoreError),
    /// A provider that must be there cannot be connected.
    #[error("failed to connect provider `{name}`{}", hint(.source))]
    Provider {
        /// The provider's name.
        name: String,
        /// The cause.
        #[source]
        source: ProviderError,
    },
    /// The settings name a provider that this program does not contain.
    #[error("there is no provider `{0}`")]
    UnknownProvider(String),
    /// The authentication cannot be opened.
    #[error("cannot open the authentication")]
    Auth(#[from] AuthError),
    /// The service cannot be opened.
    #[error("cannot open the service")]
    Service(#[from] ServiceError),
    /// Signals cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}

fn hint(error: &ProviderError) -> String {
    let hint = error.hint.as_deref();
    hint.map_or_else(String::new, |hint| format!(" (hint: {hint})"))
}

/// Runs a server until SIGTERM or SIGINT; a second one ends it at once. `ready` is called when requests are taken.
///
/// # Errors
///
/// When it cannot start. Once it runs it does not fail.
pub async fn serve(settings: Settings, ready: impl FnOnce(&Started)) -> Result<(), ServeError> {
    let signals = Signals::listen().map_err(ServeError::Signals)?;
    let all = settings.clone();
    let connect = |installation: String| async move {
        providers::connect(Registry::BUILTIN, &all, &installation).await
    };
    serve_with(settings, connect, ready, signals).await
}

/// Runs a server over providers of the caller's, the default one first, until `signals` say so.
///
/// `connect` receives the name of the installation, which belongs to the store: a server with another store must not take
/// this one's sandboxes for orphans.
///
/// # Errors
///
/// When it cannot start.
pub async fn serve_with<F>(
    settings: Settings,
    connect: impl FnOnce(String) -> F,
    ready: impl FnOnce(&Started),
    mut signals: Signals,
) -> Result<(), ServeError>
where
    F: Future<Output = Result<Vec<Arc<dyn Provider>>, ServeError>>,
{
    check_binding(&settings).map_err(ServeError::Binding)?;
    make_data_dir(&settings.data_dir)?;
    let clock = Clock::System;
    let tls = convert::certificate(&settings)
        .map(|source| TlsConfig::open(source, clock.now_ms()))
        .transpose()?;
    let mut sockets = listen::bind(&settings.server.listeners(), tls.is_some(), false)?;
    let e2b = e2b::bind(&settings, tls.is_some())?;
    sockets.extend(e2b.sockets);
    let store = Store::open(settings.database_url.expose())
        .await
        .map_err(ServeError::Store)?;
    let providers = connect(installation(&store).await?).await?;
    let http = convert::server(&settings, &sockets);
    let (app, admin_key) = open(&settings, http, store, providers, clock.clone()).await?;

    let started = Started {
        e2b_warning: e2b.warning,
        certificate: tls.as_ref().and_then(TlsConfig::to_trust),
        ..Started::new(&settings, &app, &sockets, admin_key)
    };
    let listeners = start(&settings, &app, sockets, tls.clone());
    // Timers go on until the last request is done.
    let stop = CancellationToken::new();
    let background = tokio::spawn({
        let (service, stop) = (app.service().clone(), stop.clone());
        async move { service.run(stop.cancelled()).await }
    });
    ready(&started);
    started.log();

    while signals.next().await == signals::SignalAction::Reload {
        if let Some(tls) = &tls {
            match tls.reload(clock.now_ms()) {
                Ok(()) => tracing::info!("Certificate read again"),
                Err(error) => tracing::error!(%error, "Certificate stays as it was"),
            }
        }
    }
    tracing::info!("Server ends; sandboxes go on");
    app.set_ready(false);
    listeners.end(signals.next_end()).await;
    stop.cancel();
    let rest = async {
        let _ = background.await;
        app.flush_audit().await;
        app.store().close().await;
    };
    // A second signal ends the server at once; the next start finishes the remaining work.
    tokio::select! {
        () = rest => {}
        () = signals.next_end() => tracing::warn!("Ended at once"),
    }
    Ok(())
}

/// Opens everything behind the sockets; also returns the first admin's key, if it was made just now.
async fn open(
    settings: &Settings,
    http: ServerSettings,
    store: Store,
    providers: Vec<Arc<dyn Provider>>,
    clock: Clock,
) -> Result<(App, Option<String>), ServeError> {
    let auth = Auth::open(store.clone(), clock.clone(), convert::auth(settings)).await?;
    let admin_key = first_key(&auth, &settings.data_dir).await?;
    let redis_url = settings.redis_url.as_ref().map(|url| url.expose());
    let timers = Timers::open(store.clone(), redis_url, clock.clone())
        .await
        .map_err(ServeError::Timers)?;
    let data_dir_name =
        data_dir_name::data_dir_name(&settings.data_dir).map_err(|source| ServeError::DataDir {
            path: settings.data_dir.join("nodes"),
            source,
        })?;
    let node = NodeSetup::in_slot(
        &settings.data_dir,
        &data_dir_name,
        settings.node_url.clone(),
        Some(internal::reach(auth.clone())),
    )?;
    let service = Service::open_as(
        node,
        store.clone(),
        timers.clone(),
        providers,
        convert::service(settings, sealing_key::sealing_key(settings)?),
        clock,
    )
    .await?;
    let app = App::new(service, auth, store, timers, http);
    Ok((app, admin_key))
}

fn start(settings: &Settings, app: &App, sockets: Vec<Bound>, tls: Option<TlsConfig>) -> Listeners {
    let router = router::router(app.clone());
    Listeners::start(sockets, tls, router, &convert::listen(settings))
}

/// The name of the installation: made once, and kept in the store.
async fn installation(store: &Store) -> Result<String, ServeError> {
    let name = sandyard_service::new_installation_name()?;
    store
        .meta_or_insert("installation", &name)
        .await
        .map_err(ServeError::Store)
}

/// Makes the first admin's key if there is none yet, and keeps it where the command line finds it.
async fn first_key(auth: &Auth, data_dir: &Path) -> Result<Option<String>, ServeError> {
    let Some(new) = auth.ensure_admin().await? else {
        return Ok(None);
    };
    let path = data_dir.join(ADMIN_KEY_FILE);
    let text = format!("{}\n", new.secret);
    files::replace(&path, text.as_bytes(), files::PRIVATE)
        .map_err(|source| ServeError::DataDir { path, source })?;
    Ok(Some(new.secret))
}

fn make_data_dir(path: &Path) -> Result<(), ServeError> {
    files::create_private_folder(path).map_err(|source| ServeError::DataDir {
        path: path.to_owned(),
        source,
    })
}
