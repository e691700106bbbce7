//! Web and image search through the configured service.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tool_service::ToolService;
use crate::reply::{Answer, Problem, Reply, truncate};
use crate::tool::{Effect, Tool, cancellable};
use crate::tool_state::ToolState;

/// Time limit of a search.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Number of results of a search.
const MAX_RESULTS: usize = 10;
/// Maximum number of searches in a call.
const MAX_QUERIES: usize = 10;

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// Search query.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
struct Queries {
    /// Search queries, 1 to 10.
    queries: Vec<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct ImageQuery {
    /// What the images show.
    query: String,
    /// Shape: all, square, tall, wide or panoramic (default all).
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// Type: all, face, photo, clipart, lineart or animated (default all).
    #[serde(skip_serializing_if = "Option::is_none")]
    image_type: Option<String>,
    /// Minimum width in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_width: Option<u32>,
    /// Minimum height in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_height: Option<u32>,
    /// Return only product images.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_product: Option<bool>,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    [
        cancellable("web_search", Effect::ReadsExternal, web)
            .title("Search the web")
            .description("Search the web through the service at tool_server_url. Returns titles, URLs and excerpts."),
        cancellable("web_batch_search", Effect::ReadsExternal, web_batch)
            .title("Search the web with several queries")
            .description("Search the web with up to 10 queries at once, through the service at tool_server_url."),
        cancellable("image_search", Effect::ReadsExternal, images)
            .title("Search images")
            .description("Search for images through the service at tool_server_url. Returns URLs and sizes; use read_remote_image to see one."),
    ]
    .into_iter()
    .map(|tool| tool.usable_if(|tool_state| ToolService::of(tool_state).is_ok()))
    .collect()
}

async fn web(tool_state: Arc<ToolState>, Query { query }: Query) -> Answer {
    let queries = vec![query];
    web_batch(tool_state, Queries { queries }).await
}

async fn web_batch(tool_state: Arc<ToolState>, Queries { queries }: Queries) -> Answer {
    if queries.is_empty() || queries.len() > MAX_QUERIES {
        return Err(Problem::new(format!("give 1 to {MAX_QUERIES} queries")));
    }
    if queries.iter().any(|query| query.trim().is_empty()) {
        return Err(Problem::new("a query is empty"));
    }
    let service = &ToolService::of(&tool_state)?;
    let searches = queries.iter().map(|query| async move {
        let body = json!({ "query": query, "max_results": MAX_RESULTS });
        service.post("web-search", &body, TIME_LIMIT).await
    });
    let answers = join_all(searches).await;
    // A failed search is reported next to the others; if all fail, the call fails.
    if let Some(Err(problem)) = answers.first()
        && answers.iter().all(Result::is_err)
    {
        return Err(problem.clone());
    }
    let parts = queries.iter().zip(answers).map(|(query, answer)| {
        let found = match answer {
            Ok(answer) => results(
                &answer,
                &["url", "link"],
                &["content", "snippet", "description"],
            ),
            Err(problem) => format!("this search failed: {problem}"),
        };
        format!("# {}\n{found}", truncate(query.clone(), 500))
    });
    Ok(Reply::text(parts.collect::<Vec<_>>().join("\n\n")))
}

async fn images(tool_state: Arc<ToolState>, query: ImageQuery) -> Answer {
    if query.query.trim().is_empty() {
        return Err(Problem::new("the query is empty"));
    }
    let mut body = json!(query);
    body["max_results"] = MAX_RESULTS.into();
    let answer = ToolService::of(&tool_state)?
        .post("image-search", &body, TIME_LIMIT)
        .await?;
    Ok(Reply::text(results(&answer, &["image_url", "url"], &[])))
}

/// The results as text, with the fields that are present.
fn results(answer: &Value, urls: &[&str], texts: &[&str]) -> String {
    let list = answer.get("results").unwrap_or(answer);
    let Some(list) = list.as_array() else {
        return match list.as_str() {
            Some(text) => truncate(text.to_owned(), 20_000),
            None => "the answer of the service at tool_server_url has no results".to_owned(),
        };
    };
    let lines = list.iter().take(MAX_RESULTS * 2).map(|result| {
        let of = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| result[*key].as_str());
            truncate(found.unwrap_or_default().trim().to_owned(), 2000)
        };
        let mut line = format!("- {}\n  {}", of(&["title"]), of(urls));
        if let (Some(width), Some(height)) = (result["width"].as_u64(), result["height"].as_u64()) {
            line.push_str(&format!(" ({width} by {height})"));
        }
        let text = of(texts);
        if !text.is_empty() {
            line.push_str(&format!("\n  {text}"));
        }
        line
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return "no results".to_owned();
    }
    lines.join("\n")
}
