//! `fullstack_project_init`: a new web project.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::write_atomically;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::{Effect, Tool, workspace_tool};
use crate::workspace::Workspace;

/// Maximum length of a name.
const MAX_NAME: usize = 64;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Name of the project and of its folder in the workspace: letters, digits, _, - and dots.
    project_name: String,
    /// One of static, python-http, node-http, react-vite, fastapi.
    framework: String,
}

/// A project template.
struct Framework {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Command that starts the project.
    next: &'static str,
}

const FRAMEWORKS: &[Framework] = &[
    Framework {
        name: "static",
        files: &[
            ("index.html", include_str!("projects/static/index.html")),
            ("style.css", include_str!("projects/static/style.css")),
            ("main.js", include_str!("projects/static/main.js")),
        ],
        next: "python3 -m http.server 3000 --bind 0.0.0.0",
    },
    Framework {
        name: "python-http",
        files: &[("server.py", include_str!("projects/python-http/server.py"))],
        next: "python3 server.py",
    },
    Framework {
        name: "node-http",
        files: &[
            ("server.js", include_str!("projects/node-http/server.js")),
            (
                "package.json",
                include_str!("projects/node-http/package.json"),
            ),
        ],
        next: "node server.js",
    },
    Framework {
        name: "react-vite",
        files: &[
            (
                "package.json",
                include_str!("projects/react-vite/package.json"),
            ),
            (
                "vite.config.js",
                include_str!("projects/react-vite/vite.config.js"),
            ),
            ("index.html", include_str!("projects/react-vite/index.html")),
            (
                "src/main.jsx",
                include_str!("projects/react-vite/src/main.jsx"),
            ),
            (
                "src/App.jsx",
                include_str!("projects/react-vite/src/App.jsx"),
            ),
            (".gitignore", "node_modules\ndist\n"),
        ],
        next: "npm install && npm run dev",
    },
    Framework {
        name: "fastapi",
        files: &[
            ("main.py", include_str!("projects/fastapi/main.py")),
            (
                "requirements.txt",
                include_str!("projects/fastapi/requirements.txt"),
            ),
            (".gitignore", "__pycache__\n.venv\n"),
        ],
        next: "pip install -r requirements.txt && uvicorn main:app --host 0.0.0.0 --port 3000",
    },
];

/// The tool.
pub(super) fn tool() -> Tool {
    workspace_tool("fullstack_project_init", Effect::Adds, init)
        .title("Create a project")
        .description("Create a folder in the workspace with a small working web project. Downloads nothing. Returns the files and the command that \
         starts the project; then use register_port to get its URL.")
}

fn init(workspace: &Workspace, args: Args) -> Answer {
    let names = FRAMEWORKS.iter().map(|framework| framework.name);
    let framework = FRAMEWORKS
        .iter()
        .find(|framework| framework.name == args.framework);
    let framework = framework.ok_or_else(|| {
        let names: Vec<_> = names.collect();
        Problem::new(format!(
            "unknown framework {:?}: choose one of {}",
            args.framework,
            names.join(", ")
        ))
    })?;
    let name = &args.project_name;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_name = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain);
    if !is_name || name.starts_with(['.', '-']) {
        return Err(Problem::new(format!(
            "invalid project_name {name:?}: use 1 to {MAX_NAME} letters, digits, _, - and dots, starting with a letter"
        )));
    }
    let folder = workspace.resolve(&workspace.root().join(name).display().to_string())?;
    check_empty(&folder)?;
    let mut text = format!("created {}:\n", workspace.display(&folder));
    for (file, content) in framework.files {
        write_atomically(&folder.join(file), &content.replace("PROJECT_NAME", name))?;
        text.push_str(&format!("  {file}\n"));
    }
    text.push_str(&format!("start it there with: {}", framework.next));
    Ok(Reply::text(text))
}

fn check_empty(folder: &Path) -> Result<()> {
    let is_empty = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_empty {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{} exists already and is not empty: choose another project_name",
        folder.display()
    )))
}
