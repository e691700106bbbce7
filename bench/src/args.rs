//! Command line, and the subjects that it selects.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use sandyard_core::Limits;

use crate::report::Section;
use crate::subject::Subject;
use crate::subject::bwrap::Bubblewrap;
use crate::subject::docker::{DockerApi, DockerCli, DockerConfig, Network};
use crate::subject::engine::OwnEngine;
use crate::subject::sdk::Sdk;
use crate::subject::server::{Pool, Server};

/// Prints the performance table. Measures the subjects that options name; `bench/run` names all.
#[derive(Debug, Parser)]
#[command(name = "sandyard-bench")]
pub(crate) struct Args {
    /// Take few samples, to see that it works; not for comparison.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only this, comma-separated: a section (engine, http), a group of rows (start, pool, output, exec, freeze,
    /// burst, crowd, files, egress, sdk), one row by its id in the JSON, or one of those in one section (http.exec, http.exec_p50).
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    pub(crate) only: Vec<String>,

    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write the JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Directory for the data of our own engine and servers; enables measuring them.
    #[arg(long, value_name = "DIR", requires = "sandyard")]
    data_dir: Option<PathBuf>,

    /// The `sandyard` program, to start a launcher and servers from.
    #[arg(long, value_name = "PROGRAM")]
    sandyard: Option<PathBuf>,

    /// Remove what an earlier run in the same directory left running, and measure nothing.
    #[arg(long, requires = "data_dir")]
    pub(crate) clear_up: bool,

    /// Create this many sandboxes, run `true` in each and delete it, and measure nothing else, for `bench/profile`.
    #[arg(long, value_name = "COUNT", requires = "data_dir")]
    pub(crate) churn: Option<usize>,

    /// With `--churn`: use a server without ready sandboxes instead of the engine.
    #[arg(long, requires = "churn")]
    pub(crate) http: bool,

    /// With `--churn`: report where in the kernel our processes waited.
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

    /// The daemon has a bridge: also measure `docker run` with network.
    #[arg(long)]
    docker_bridge: bool,

    /// A Python with the SDKs of clients/requirements.txt; enables measuring through them.
    #[arg(long, value_name = "PROGRAM", requires = "sdk_client")]
    sdk_python: Option<PathBuf>,

    /// The program that drives the SDKs: clients/first_command.py.
    #[arg(long, value_name = "FILE", requires = "sdk_python")]
    sdk_client: Option<PathBuf>,

    /// The `bwrap` program to measure.
    #[arg(long, value_name = "PROGRAM")]
    bwrap: Option<PathBuf>,
}

/// Subjects to measure, with names and versions of the rivals among them.
#[derive(Default)]
pub(crate) struct Field {
    /// Subjects, in no particular order.
    pub(crate) subjects: Vec<Box<dyn Subject>>,
    /// Names and versions of the rivals.
    pub(crate) rivals: Vec<String>,
}

impl Args {
    /// Creates the selected subjects of `section`.
    pub(crate) fn field(&self, section: Section) -> Result<Field> {
        match section {
            Section::Engine => self.engine_field(),
            Section::Http => self.http_field(),
        }
    }

    fn http_field(&self) -> Result<Field> {
        let Field {
            mut subjects,
            mut rivals,
        } = Field::default();
        for pool in [Pool::Default, Pool::Empty, Pool::EmptyNoGateway] {
            if let Some(server) = self.server(pool)? {
                subjects.push(Box::new(server));
            }
        }
        if let Some(config) = self.docker() {
            let docker = DockerApi::connect(config).context("failed to reach Docker")?;
            rivals.push(docker.version()?);
            subjects.push(Box::new(docker));
        }
        Ok(Field { subjects, rivals })
    }

    fn engine_field(&self) -> Result<Field> {
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

    /// Starts our own engine, if it is selected.
    pub(crate) fn engine(&self) -> Result<Option<OwnEngine>> {
        let Some((program, folder)) = self.own_installation() else {
            return Ok(None);
        };
        OwnEngine::start(program, folder.join("engine"))
            .map(Some)
            .context("failed to start the engine")
    }

    /// Starts a server of our own, if it is selected.
    pub(crate) fn server(&self, pool: Pool) -> Result<Option<Server>> {
        let Some((program, folder)) = self.own_installation() else {
            return Ok(None);
        };
        Server::start(program, &folder, pool, self.sdk())
            .map(Some)
            .context("failed to start the server")
    }

    /// Removes what an earlier run left.
    pub(crate) fn clear_up(&self) -> Result<()> {
        let (program, folder) = self
            .own_installation()
            .context("`--clear-up` needs `--sandyard`")?;
        Server::clear_up(&program, &folder)?;
        // Dropping it removes everything.
        self.engine().map(drop)
    }

    fn own_installation(&self) -> Option<(PathBuf, PathBuf)> {
        self.sandyard.clone().zip(self.data_dir.clone())
    }

    fn sdk(&self) -> Option<Sdk> {
        Some(Sdk {
            python: self.sdk_python.clone()?,
            program: self.sdk_client.clone()?,
        })
    }

    fn docker(&self) -> Option<DockerConfig> {
        Some(DockerConfig {
            socket: self.docker_socket.clone()?,
            program: self.docker_program.clone(),
            image: self.docker_image.clone()?,
            limits: Limits::default(),
            sdk: self.sdk(),
        })
    }
}
