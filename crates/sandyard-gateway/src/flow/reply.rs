//! Answers to a program, in the protocol it used.

use sandyard_wire::egress::Via;

use super::Stop;
use super::program_socket::ProgramSocket;

/// SOCKS 5 reply: connected, with an unspecified bound address.
const SOCKS_ACCEPTED: [u8; 10] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
const SOCKS_DENIED: u8 = 2;
const SOCKS_UNREACHABLE: u8 = 4;

/// Confirms the connection to a program that used a proxy. A redirected program needs no answer.
pub(super) async fn accept(program: &ProgramSocket, via: Via) -> std::io::Result<()> {
    match via {
        Via::Redirect | Via::Http => Ok(()),
        Via::Connect => {
            let accepted = b"HTTP/1.1 200 Connection established\r\n\r\n";
            program.send_all(accepted).await
        }
        Via::Socks => program.send_all(&SOCKS_ACCEPTED).await,
    }
}

/// Sends a refusal with its reason, where the protocol can carry one. Returns whether it was sent: a redirected connection
/// cannot carry one and is reset.
pub(super) fn refuse(program: &ProgramSocket, via: Via, stop: &Stop) -> bool {
    let (status, code, reason) = match stop {
        Stop::Denied(denial) => ("403 Forbidden", SOCKS_DENIED, denial.to_string()),
        Stop::Unreachable(reason) | Stop::Failed(reason) => {
            ("502 Bad Gateway", SOCKS_UNREACHABLE, reason.clone())
        }
        Stop::Cancelled => return false,
    };
    let answer = match via {
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
    // Without waiting: a program that does not read gets no answer.
    let is_sent = program.send_now(&answer);
    program.finish();
    is_sent
}
