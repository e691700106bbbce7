//! The command line, and the subjects it names.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use sandyard_core::Limits;

use crate::subject::Subject;
use crate::subject::bwrap::Bubblewrap;
use crate::subject::docker::{DockerApi, DockerCli, DockerConfig, Network};
use crate::subject::engine::OwnEngine;

/// Prints the performance table. Who is named is measured: see `bench/run`, which names everybody.
#[derive(Debug, Parser)]
#[command(name = "sandyard-bench")]
pub(crate) struct Args {
    /// Take few samples: to see that it works, not to compare.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these groups of rows, comma-separated: start, pool, output, exec, freeze, burst, crowd, files.
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    pub(crate) only: Vec<String>,

    /// Print JSON in place of the table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the JSON to this file as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Data directory for our own engine, which is then measured.
    #[arg(long, value_name = "DIR", requires = "sandyard")]
    data_dir: Option<PathBuf>,

    /// The `sandyard` program, to start a launcher from.
    #[arg(long, value_name = "PROGRAM")]
    sandyard: Option<PathBuf>,

    /// Create and delete this many sandboxes and measure nothing else, for `bench/profile`. 0 only clears up.
    #[arg(long, value_name = "COUNT", requires = "data_dir")]
    pub(crate) churn: Option<usize>,

    /// With `--churn`: say where in the kernel our processes had to wait.
    #[arg(long, requires = "churn")]
    pub(crate) waits: bool,

    /// Socket of a Docker daemon to measure.
    #[arg(long, value_name = "SOCKET", requires = "docker_image")]
    docker_socket: Option<PathBuf>,

    /// The `docker` program that fits that daemon.
    #[arg(long, value_name = "PROGRAM", default_value = "docker")]
    docker_program: PathBuf,

    /// Image to start containers from.
    #[arg(long, value_name = "IMAGE")]
    docker_image: Option<String>,

    /// The daemon has a bridge: measure `docker run` with network, too.
    #[arg(long)]
    docker_bridge: bool,

    /// The `bwrap` program to measure.
    #[arg(long, value_name = "PROGRAM")]
    bwrap: Option<PathBuf>,
}

/// Everybody who is measured, and the names and versions of the rivals among them.
#[derive(Default)]
pub(crate) struct Field {
    /// The measured, in no particular order.
    pub(crate) subjects: Vec<Box<dyn Subject>>,
    /// What the rivals call themselves.
    pub(crate) rivals: Vec<String>,
}

impl Args {
    /// Makes everybody who is named.
    pub(crate) fn field(&self) -> Result<Field> {
        let Field {
            mut subjects,
            mut rivals,
        } = Field::default();
        if let Some(engine) = self.engine()? {
            subjects.push(Box::new(engine));
        }
        if let Some(config) = self.docker() {
            let docker = DockerApi::connect(config.clone()).context("failed to reach Docker")?;
            rivals.push(docker.version()?);
            subjects.push(Box::new(docker));
            subjects.push(Box::new(DockerCli::new(config.clone(), Network::None)));
            if self.docker_bridge {
                subjects.push(Box::new(DockerCli::new(config, Network::Bridge)));
            }
        }
        if let Some(program) = &self.bwrap {
            let bubblewrap = Bubblewrap::new(program.clone());
            rivals.push(bubblewrap.version()?);
            subjects.push(Box::new(bubblewrap));
        }
        Ok(Field { subjects, rivals })
    }

    /// Starts our own engine, if it is named.
    pub(crate) fn engine(&self) -> Result<Option<OwnEngine>> {
        let (Some(program), Some(data_dir)) = (self.sandyard.clone(), self.data_dir.clone()) else {
            return Ok(None);
        };
        OwnEngine::start(program, data_dir)
            .map(Some)
            .context("failed to start the engine")
    }

    fn docker(&self) -> Option<DockerConfig> {
        Some(DockerConfig {
            socket: self.docker_socket.clone()?,
            program: self.docker_program.clone(),
            image: self.docker_image.clone()?,
            limits: Limits::default(),
        })
    }
}
