//! Images and videos, made by a tool server outside.
//!
//! ```text
//! image-generation  {"prompt", "aspect_ratio"?, "size"?}                            → {"url"} or {"data": base64, "media_type"}
//! video-generation  {"prompt", "aspect_ratio"?, "duration_seconds"?, "image_url"?}  → {"url"}
//! ```

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Call;
use crate::reply::{Answer, MAX_IMAGE, Problem, Reply, cut};
use crate::tool::{Effect, Tool, tool};
use crate::web::outside::Outside;
use crate::workshop::Workshop;

/// How long an image may take.
const IMAGE: Duration = Duration::from_secs(3 * 60);
/// How long a video may take.
const VIDEO: Duration = Duration::from_secs(15 * 60);
/// Longest description.
const MAX_PROMPT: usize = 20_000;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Image {
    /// What the image is to show.
    prompt: String,
    /// Width to height, like "1:1" or "16:9".
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// Its size in pixels, like "1024x1024".
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Video {
    /// What the video is to show.
    prompt: String,
    /// Width to height, like "16:9".
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// How long it is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    /// The address of an image it is to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool::<Image, _, _>(
            "generate_image",
            "Make an image",
            Effect::ChangesOutside,
            "Makes an image from a description through the service at tool_server_url. Answers with its address, or the image \
             itself.",
            |workshop, args, call| async move {
                make(
                    workshop,
                    "image-generation",
                    &args.prompt,
                    &args,
                    IMAGE,
                    call,
                )
                .await
            },
        ),
        tool::<Video, _, _>(
            "generate_video",
            "Make a video",
            Effect::ChangesOutside,
            "Makes a short video from a description through the service at tool_server_url, which takes minutes. Answers with \
             its address.",
            |workshop, args, call| async move {
                make(
                    workshop,
                    "video-generation",
                    &args.prompt,
                    &args,
                    VIDEO,
                    call,
                )
                .await
            },
        ),
    ]
}

async fn make(
    workshop: Arc<Workshop>,
    path: &str,
    prompt: &str,
    args: &(impl Serialize + Sync),
    limit: Duration,
    call: Call,
) -> Answer {
    if prompt.trim().is_empty() || prompt.len() > MAX_PROMPT {
        return Err(Problem::new(format!(
            "the prompt has 1 to {MAX_PROMPT} characters"
        )));
    }
    let outside = Outside::of(&workshop)?;
    let body = serde_json::to_value(args).map_err(Problem::new)?;
    let answer = tokio::select! {
        answer = outside.post(path, &body, limit) => answer?,
        () = call.cancelled.cancelled() => return Err(Problem::new("the call was cancelled")),
    };
    read(&answer)
}

fn read(answer: &Value) -> Answer {
    if let Some(url) = answer["url"].as_str() {
        return Ok(Reply::text(cut(url.to_owned(), 8192)));
    }
    let wrong = || {
        Problem::new(
            "the service at tool_server_url answered neither an address (url) nor an image (data): tell its owner",
        )
    };
    let data = answer["data"].as_str().ok_or_else(wrong)?;
    let data = STANDARD.decode(data).map_err(|_| wrong())?;
    let media_type = answer["media_type"].as_str().unwrap_or("image/png");
    if data.len() > MAX_IMAGE || !media_type.starts_with("image/") || media_type.len() > 100 {
        return Err(Problem::new(format!(
            "the image of the service at tool_server_url is larger than {MAX_IMAGE} bytes, or is none: ask for a smaller one"
        )));
    }
    Ok(Reply::text("the image:").with_image(data, media_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::Bench;
    use axum::routing::post;
    use serde_json::json;

    #[tokio::test]
    async fn without_a_tool_server_they_say_so() {
        let bench = Bench::new();
        for tool in ["generate_image", "generate_video"] {
            let problem = bench.problem(tool, json!({"prompt": "a cat"})).await;
            assert!(
                problem.contains("no tool_server_url is configured"),
                "{problem}"
            );
        }
    }

    #[tokio::test]
    async fn images_and_videos_come_from_the_tool_server() {
        let image = |axum::Json(asked): axum::Json<Value>| async move {
            assert_eq!(asked["prompt"], "a cat");
            axum::Json(json!({"data": STANDARD.encode(b"pixels"), "media_type": "image/png"}))
        };
        let video = || async { axum::Json(json!({"url": "https://example.com/cat.mp4"})) };
        let app = axum::Router::new()
            .route("/image-generation", post(image))
            .route("/video-generation", post(video));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let bench = Bench::new();
        bench
            .workshop
            .tell(|told| told.tool_server_url = Some(format!("http://{address}")));
        let reply = bench
            .call("generate_image", json!({"prompt": "a cat"}))
            .await
            .unwrap();
        let image = reply.into_result().content.remove(1);
        assert_eq!(image.as_image().unwrap().data, STANDARD.encode(b"pixels"));
        let text = bench
            .text("generate_video", json!({"prompt": "a cat"}))
            .await;
        assert_eq!(text, "https://example.com/cat.mp4");
        assert!(
            bench
                .problem("generate_image", json!({"prompt": " "}))
                .await
                .contains("1 to")
        );
    }

    #[test]
    fn what_it_answers_is_not_trusted() {
        let large = STANDARD.encode(vec![0; MAX_IMAGE + 1]);
        for bad in [
            json!({}),
            json!({"data": "%"}),
            json!({"data": large}),
            json!({"data": "AAAA", "media_type": "text/html"}),
        ] {
            assert!(read(&bad).is_err());
        }
    }
}
