//! `generate_image` and `generate_video`, through the configured service.
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

use crate::reply::{Answer, MAX_IMAGE, Problem, Reply, truncate};
use crate::tool::{Effect, Tool, cancellable};
use crate::tool_state::ToolState;
use crate::web::tool_service::ToolService;

/// Time limit for an image.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(3 * 60);
/// Time limit for a video.
const VIDEO_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum length of a prompt.
const MAX_PROMPT: usize = 20_000;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Image {
    /// Description of the image.
    prompt: String,
    /// Aspect ratio, for example "1:1" or "16:9".
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// Size in pixels, for example "1024x1024".
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Video {
    /// Description of the video.
    prompt: String,
    /// Aspect ratio, for example "16:9".
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    /// Duration in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    /// URL of an image to use as the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
}

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    [
        cancellable("generate_image", Effect::ChangesExternal, image)
            .title("Generate an image")
            .description("Generate an image from a description through the service at tool_server_url. Returns its URL or the image."),
        cancellable("generate_video", Effect::ChangesExternal, video)
            .title("Generate a video")
            .description("Generate a short video from a description through the service at tool_server_url. Takes minutes. Returns its URL."),
    ]
    .into_iter()
    .map(|tool| tool.usable_if(|tool_state| ToolService::of(tool_state).is_ok()))
    .collect()
}

async fn image(tool_state: Arc<ToolState>, args: Image) -> Answer {
    let path = "image-generation";
    generate(&tool_state, path, &args.prompt, &args, IMAGE_TIMEOUT).await
}

async fn video(tool_state: Arc<ToolState>, args: Video) -> Answer {
    let path = "video-generation";
    generate(&tool_state, path, &args.prompt, &args, VIDEO_TIMEOUT).await
}

async fn generate(
    tool_state: &ToolState,
    path: &str,
    prompt: &str,
    args: &(impl Serialize + Sync),
    limit: Duration,
) -> Answer {
    if prompt.trim().is_empty() || prompt.len() > MAX_PROMPT {
        return Err(Problem::new(format!(
            "the prompt must have 1 to {MAX_PROMPT} characters"
        )));
    }
    let service = ToolService::of(tool_state)?;
    let body = serde_json::to_value(args).map_err(Problem::new)?;
    read(&service.post(path, &body, limit).await?)
}

fn read(answer: &Value) -> Answer {
    if let Some(url) = answer["url"].as_str() {
        return Ok(Reply::text(truncate(url.to_owned(), 8192)));
    }
    let invalid = || {
        Problem::new(
            "the answer of the service at tool_server_url has neither a URL (url) nor an image (data): report this to its operator",
        )
    };
    let data = answer["data"].as_str().ok_or_else(invalid)?;
    let data = STANDARD.decode(data).map_err(|_| invalid())?;
    let media_type = answer["media_type"].as_str().unwrap_or("image/png");
    if data.len() > MAX_IMAGE || !media_type.starts_with("image/") || media_type.len() > 100 {
        return Err(Problem::new(format!(
            "the service at tool_server_url returned no image, or one larger than {MAX_IMAGE} bytes: ask for a smaller one"
        )));
    }
    Ok(Reply::text("generated image:").with_image(data, media_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_env::TestEnv;
    use axum::routing::post;
    use serde_json::json;

    #[tokio::test]
    async fn without_a_service_the_problem_says_how_to_configure_it() {
        let env = TestEnv::new();
        for tool in ["generate_image", "generate_video"] {
            let problem = env.problem(tool, json!({"prompt": "a cat"})).await;
            assert!(
                problem.contains("no tool_server_url is configured"),
                "{problem}"
            );
        }
    }

    #[tokio::test]
    async fn images_and_videos_come_from_the_service() {
        let image = |axum::Json(request): axum::Json<Value>| async move {
            assert_eq!(request["prompt"], "a cat");
            axum::Json(json!({"data": STANDARD.encode(b"pixels"), "media_type": "image/png"}))
        };
        let video = || async { axum::Json(json!({"url": "https://example.com/cat.mp4"})) };
        let app = axum::Router::new()
            .route("/image-generation", post(image))
            .route("/video-generation", post(video));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let env = TestEnv::new();
        env.tool_state
            .update_config(|config| config.tool_server_url = Some(format!("http://{address}")));
        let reply = env
            .call("generate_image", json!({"prompt": "a cat"}))
            .await
            .unwrap();
        let image = reply.into_result().content.remove(1);
        assert_eq!(image.as_image().unwrap().data, STANDARD.encode(b"pixels"));
        let text = env.text("generate_video", json!({"prompt": "a cat"})).await;
        assert_eq!(text, "https://example.com/cat.mp4");
        assert!(
            env.problem("generate_image", json!({"prompt": " "}))
                .await
                .contains("1 to")
        );
    }

    #[test]
    fn invalid_answers_are_refused() {
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
