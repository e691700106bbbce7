//! The way out of a container, up to the gateway: what its agent would hand over comes in pieces, and is put together here.

use std::io;
use std::os::fd::AsFd;

use sandyard_agent_client::wire::egress::{FromAgent, decode};
use sandyard_link::{EGRESS_READY, LinkStream, Mux, StreamKind, read_frame, splice};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

use super::channel::Channel;
use super::tcp_pair;

/// Opens a channel of that number, waiting for as long as the agent does not answer.
pub(super) async fn open(mux: &Mux, number: u32) -> io::Result<LinkStream> {
    let mut head = vec![StreamKind::Egress.byte()];
    head.extend_from_slice(&number.to_be_bytes());
    let mut carried = mux.open(&head).await?;
    match carried.read_u8().await? {
        EGRESS_READY => Ok(carried),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Carries frames both ways until either end has enough.
pub(super) async fn serve(
    carried: LinkStream,
    channel: &Channel,
    mut from_gateway: OwnedReadHalf,
    mux: &Mux,
) -> io::Result<()> {
    let (mut from_agent, mut to_agent) = tokio::io::split(carried);
    let inwards = tokio::io::copy(&mut from_gateway, &mut to_agent);
    let outwards = async {
        loop {
            // What is in it is for the gateway to judge, as it is with any agent.
            let frame = read_frame(&mut from_agent).await?;
            channel.say(&frame, None).await?;
        }
    };
    tokio::select! {
        ended = inwards => ended.map(drop),
        ended = outwards => ended,
        () = mux.ended() => Ok(()),
    }
}

/// Reads what a program's connection begins with: its channel's number, and the frame that says where to.
pub(super) async fn read_head(carried: &mut LinkStream) -> io::Result<(u32, Vec<u8>)> {
    let number = carried.read_u32().await?;
    let frame = read_frame(carried).await?;
    match decode(&mut frame.clone()) {
        Ok(Some(FromAgent::Open { .. })) => Ok((number, frame)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Gives a program's connection to the gateway, and sees it to its end.
pub(super) async fn hand_over(
    channel: &Channel,
    frame: &[u8],
    carried: LinkStream,
) -> io::Result<()> {
    let (ours, gateways) = tcp_pair::connected().await?;
    // Until the gateway has it, and after that until all of it is there.
    splice::reset(&ours);
    channel.say(frame, Some(gateways.as_fd())).await?;
    drop(gateways);
    splice::tcp(ours, carried).await
}
