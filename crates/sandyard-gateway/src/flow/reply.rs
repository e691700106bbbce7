//! What a program is told, in the words of how it came.

use sandyard_wire::egress::Via;

use super::Stop;
use super::inside::Inside;

/// SOCKS 5: connected, bound to nothing in particular.
const SOCKS_ACCEPTED: [u8; 10] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
const SOCKS_DENIED: u8 = 2;
const SOCKS_UNREACHABLE: u8 = 4;

/// Tells a program that asked a proxy that it is connected. One that was redirected believes it is.
pub(super) async fn accept(inside: &Inside, via: Via) -> std::io::Result<()> {
    match via {
        Via::Redirect | Via::Http => Ok(()),
        Via::Connect => {
            let accepted = b"HTTP/1.1 200 Connection established\r\n\r\n";
            inside.send_all(accepted).await
        }
        Via::Socks => inside.send_all(&SOCKS_ACCEPTED).await,
    }
}

/// Tells a program why not, where there are words for it. Says whether it was told; one that was
/// redirected cannot be, and gets a reset.
pub(super) fn refuse(inside: &Inside, via: Via, stop: &Stop) -> bool {
    let (status, code, reason) = match stop {
        Stop::Denied(denial) => ("403 Forbidden", SOCKS_DENIED, denial.to_string()),
        Stop::Unmet(reason) | Stop::Failed(reason) => {
            ("502 Bad Gateway", SOCKS_UNREACHABLE, reason.clone())
        }
        Stop::Gone => return false,
    };
    let told = match via {
        Via::Redirect => return false,
        Via::Connect | Via::Http => {
            let text = format!("sandyard gateway: {reason}\n");
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                text.len()
            );
            (head + &text).into_bytes()
        }
        Via::Socks => {
            let mut refusal = SOCKS_ACCEPTED;
            refusal[1] = code;
            refusal.to_vec()
        }
    };
    // As much as fits: nobody is waited for who does not want to hear it.
    let is_told = inside.send_now(&told);
    inside.finish();
    is_told
}
