//! The providers against the real engine, and a node in front of it. Needs root.

mod daytona;
mod daytona_counterpart;
mod daytona_faults;
mod daytona_lists;
mod daytona_snapshots;
mod daytona_states;
mod docker;
mod docker_borders;
mod docker_sweep;
mod dockerd;
mod e2b;
mod e2b_counterpart;
mod e2b_faults;
mod e2b_ports;
mod e2b_templates;
mod embedded;
mod faults;
mod node;
mod server;
mod volumes;
mod yard;
