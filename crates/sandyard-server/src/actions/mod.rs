//! Actions that the native dialect and the MCP tools offer in the same way: the request, its checks, the call of the service, the reply.

pub(crate) mod copies;
pub(crate) mod create;
pub(crate) mod expose_port;
pub(crate) mod set_timeout;
pub(crate) mod write_file;
