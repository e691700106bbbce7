//! Egress of a container up to the gateway: forwards frames, and connects the streams of programs to sockets for the gateway.

use std::io;
use std::os::fd::AsFd;

use sandyard_agent_client::wire::egress::{FromAgent, decode};
use sandyard_link::{EGRESS_READY, LinkStream, Mux, StreamKind, read_frame, splice};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

use super::channel::Channel;
use super::tcp_pair;

/// Opens a channel with a number; waits for as long as the agent does not answer.
pub(super) async fn open(mux: &Mux, number: u32) -> io::Result<LinkStream> {
    let mut head = vec![StreamKind::Egress.byte()];
    head.extend_from_slice(&number.to_be_bytes());
    let mut stream = mux.open(&head).await?;
    match stream.read_u8().await? {
        EGRESS_READY => Ok(stream),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Forwards frames in both directions until either end closes.
pub(super) async fn serve(
    stream: LinkStream,
    channel: &Channel,
    mut from_gateway: OwnedReadHalf,
    mux: &Mux,
) -> io::Result<()> {
    let (mut from_agent, mut to_agent) = tokio::io::split(stream);
    let to_container = tokio::io::copy(&mut from_gateway, &mut to_agent);
    let to_gateway = async {
        loop {
            // The gateway validates the content, as with any agent.
            let frame = read_frame(&mut from_agent).await?;
            channel.send_frame(&frame, None).await?;
        }
    };
    tokio::select! {
        ended = to_container => ended.map(drop),
        ended = to_gateway => ended,
        () = mux.ended() => Ok(()),
    }
}

/// Reads the head of a program's connection: the number of its channel, and the frame with its target.
pub(super) async fn read_head(stream: &mut LinkStream) -> io::Result<(u32, Vec<u8>)> {
    let number = stream.read_u32().await?;
    let frame = read_frame(stream).await?;
    match decode(&mut frame.clone()) {
        Ok(Some(FromAgent::Open { .. })) => Ok((number, frame)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Passes a program's connection to the gateway, and forwards its bytes until it ends.
pub(super) async fn hand_over(
    channel: &Channel,
    frame: &[u8],
    stream: LinkStream,
) -> io::Result<()> {
    let (own_end, gateway_end) = tcp_pair::connect_pair().await?;
    // Reset on close until the gateway has the connection, and after that until all bytes are delivered.
    splice::reset(&own_end);
    channel.send_frame(frame, Some(gateway_end.as_fd())).await?;
    drop(gateway_end);
    splice::tcp(own_end, stream).await
}
