//! Searching through the configured server.

use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::outside::Outside;
use crate::call::Call;
use crate::reply::{Answer, Problem, Reply, cut};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// For one search.
const LIMIT: Duration = Duration::from_secs(30);
/// Results of one search.
const MAX_RESULTS: usize = 10;
/// Searches at once.
const MAX_QUERIES: usize = 10;

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// What to search for.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
struct Queries {
    /// What to search for, at most 10 at once.
    queries: Vec<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct ImageQuery {
    /// What should be on the images.
    query: String,
    /// Their shape: all, square, tall, wide or panoramic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// Their kind: all, face, photo, clipart, lineart or animated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image_type: Option<String>,
    /// Narrowest, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_width: Option<u32>,
    /// Lowest, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_height: Option<u32>,
    /// Only images of products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_product: Option<bool>,
}

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<Query, _, _>(
            "web_search",
            "Search the web",
            Effect::LooksOutside,
            "Searches the web through the service at tool_server_url: titles, addresses and extracts of what was found.",
            |workshop, args: Query, call| async move {
                unless_cancelled(call, web(&workshop, vec![args.query])).await
            },
        ),
        tool::<Queries, _, _>(
            "web_batch_search",
            "Search the web for several things",
            Effect::LooksOutside,
            "Searches the web for several things at once through the service at tool_server_url.",
            |workshop, args: Queries, call| async move {
                unless_cancelled(call, web(&workshop, args.queries)).await
            },
        ),
        tool::<ImageQuery, _, _>(
            "image_search",
            "Search images",
            Effect::LooksOutside,
            "Searches images through the service at tool_server_url: their addresses and sizes. read_remote_image shows one.",
            |workshop, args: ImageQuery, call| async move {
                unless_cancelled(call, images(&workshop, &args)).await
            },
        ),
    ]
}

async fn unless_cancelled(call: Call, work: impl Future<Output = Answer>) -> Answer {
    tokio::select! {
        answer = work => answer,
        () = call.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
    }
}

async fn web(workshop: &Workshop, queries: Vec<String>) -> Answer {
    if queries.is_empty() || queries.len() > MAX_QUERIES {
        return Err(Problem::new(format!(
            "give between 1 and {MAX_QUERIES} queries at once"
        )));
    }
    if queries.iter().any(|query| query.trim().is_empty()) {
        return Err(Problem::new("a query is empty"));
    }
    let outside = Outside::of(workshop)?;
    let outside = &outside;
    let searches = queries.iter().map(|query| async move {
        let body = json!({ "query": query, "max_results": MAX_RESULTS });
        outside.post("web-search", &body, LIMIT).await
    });
    let answers = join_all(searches).await;
    // One that fails is told beside the others; if all do, that is the answer.
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
        format!("# {}\n{found}", cut(query.clone(), 500))
    });
    Ok(Reply::text(parts.collect::<Vec<_>>().join("\n\n")))
}

async fn images(workshop: &Workshop, query: &ImageQuery) -> Answer {
    if query.query.trim().is_empty() {
        return Err(Problem::new("the query is empty"));
    }
    let mut body = json!(query);
    body["max_results"] = MAX_RESULTS.into();
    let answer = Outside::of(workshop)?
        .post("image-search", &body, LIMIT)
        .await?;
    Ok(Reply::text(results(&answer, &["image_url", "url"], &[])))
}

/// Results in words, whatever of it is there.
fn results(answer: &Value, addresses: &[&str], texts: &[&str]) -> String {
    let list = answer.get("results").unwrap_or(answer);
    let Some(list) = list.as_array() else {
        return match list.as_str() {
            Some(text) => cut(text.to_owned(), 20_000),
            None => "the answer of the service at tool_server_url has no results in it".to_owned(),
        };
    };
    let lines = list.iter().take(MAX_RESULTS * 2).map(|result| {
        let of = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| result[*key].as_str());
            cut(found.unwrap_or_default().trim().to_owned(), 2000)
        };
        let mut line = format!("- {}\n  {}", of(&["title"]), of(addresses));
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
        return "nothing was found".to_owned();
    }
    lines.join("\n")
}
