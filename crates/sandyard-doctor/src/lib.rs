//! Which kernel features this host has, what each gives, and how to get the missing ones.
