//! Client of the agent protocol; treats every reply as hostile.
