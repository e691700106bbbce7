//! The log: lines for people or JSON, on standard error.

use sandyard_config::settings::LogSettings;
use tracing_subscriber::EnvFilter;

/// A log that cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("`log.level` cannot be read: {0}")]
pub struct LogError(#[from] tracing_subscriber::filter::ParseError);

/// Sets the log up for this process; one that is set up already stays.
///
/// # Errors
///
/// When the level makes no sense.
pub fn init_logging(settings: &LogSettings) -> Result<(), LogError> {
    let filter = EnvFilter::builder().parse(&settings.level)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A line that cannot be written, to a file on a full disk, would be reported with `eprintln!`, which panics there.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // Fails only when there is one already, as in tests.
    let _ = if settings.is_json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.with_ansi(false).with_target(false).try_init()
    };
    Ok(())
}
