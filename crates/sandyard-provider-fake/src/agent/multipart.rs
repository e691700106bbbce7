//! The files of a `multipart/form-data` body.

use std::convert::Infallible;

use bytes::Bytes;
use multer::Multipart;

/// The files of a form, with the paths that they name; `None` when the form is malformed.
pub(super) async fn files(content_type: &str, body: Bytes) -> Option<Vec<(Option<String>, Bytes)>> {
    let boundary = multer::parse_boundary(content_type).ok()?;
    let body = futures_util::stream::iter([Ok::<_, Infallible>(body)]);
    let mut form = Multipart::new(body, boundary);
    let mut files = Vec::new();
    while let Some(field) = form.next_field().await.ok()? {
        // Other fields of a form are not files.
        if field.name() == Some("file") {
            let path = field.file_name().map(str::to_owned);
            files.push((path, field.bytes().await.ok()?));
        }
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn parse(body: &str) -> Option<Vec<(Option<String>, Bytes)>> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        files("multipart/form-data; boundary=xx", body).await
    }

    #[tokio::test]
    async fn the_files_of_a_form_are_read() {
        let body = "--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a \\\"b\"\r\n\
                    Content-Type: text/plain\r\n\r\none\r\ntwo\r\n--xx\r\n\
                    content-disposition: form-data; name=\"other\"\r\n\r\nx\r\n--xx--\r\n";
        let file = (Some("/a \"b".to_owned()), Bytes::from("one\r\ntwo"));
        assert_eq!(parse(body).await, Some(vec![file]));
    }

    #[tokio::test]
    async fn a_malformed_form_is_none() {
        for body in ["", "--xx", "--xx\r\n\r\nno end", "nothing"] {
            assert_eq!(parse(body).await, None, "{body:?}");
        }
        assert_eq!(files("multipart/form-data", Bytes::new()).await, None);
    }
}
