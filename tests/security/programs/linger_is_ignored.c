/* Prints what `SO_LINGER` is after it was set. A socket that lingers and is dropped by the kernel itself, because it was sent over
 * a socket pair that carries itself, would hold up a worker of the host's kernel. */
#include <stdio.h>
#include <sys/socket.h>

int main(void) {
    struct linger linger = {1, 25};
    socklen_t length = sizeof linger;
    int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    int set = setsockopt(socket_, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    int got = getsockopt(socket_, SOL_SOCKET, SO_LINGER, &linger, &length);
    printf("set %d, get %d, on %d\n", set, got, linger.l_onoff);
}
