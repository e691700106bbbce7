//! The state that all requests share.

use std::cell::RefCell;
use std::rc::Rc;

use crate::activity::Counters;
use crate::egress::Egress;
use crate::metrics::Meter;
use crate::process::Registry;
use crate::settings::Settings;
use crate::start::{Services, Start};
use crate::tools::ToolServer;
use crate::watch::Hub;

/// The agent's state.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) settings: RefCell<Settings>,
    pub(crate) processes: Registry,
    pub(crate) watches: Rc<Hub>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) meter: Meter,
    pub(crate) egress: Rc<Egress>,
    pub(crate) start: Start,
    pub(crate) services: Services,
    pub(crate) tools: ToolServer,
}

impl Agent {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings: RefCell::new(settings),
            processes: Registry::default(),
            watches: Rc::new(Hub::default()),
            counters: Rc::new(Counters::default()),
            meter: Meter::default(),
            egress: Rc::new(Egress::default()),
            start: Start::default(),
            services: Services::default(),
            tools: ToolServer::default(),
        }
    }
}
