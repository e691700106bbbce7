/* Takes the agent's place and answers each of the server's connections with a descriptor whose close takes long.
 *
 *     lingering_reply SECONDS-TO-LINGER SECONDS-TO-LIVE
 *
 * The name of its thread says how many connections it has answered: the agent no longer does, so nobody can read its output.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A connection full of bytes that nobody reads. */
static int lingering(int seconds) {
    static int listener = -1;
    static struct sockaddr_in address;
    if (listener < 0) {
        int size = 4096;
        socklen_t length = sizeof address;
        listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(listener, (void *)&address, sizeof address);
        listen(listener, 64);
        getsockname(listener, (void *)&address, &length);
    }
    int from = socket(AF_INET, SOCK_STREAM, 0);
    connect(from, (void *)&address, sizeof address);
    accept(listener, 0, 0);
    fcntl(from, F_SETFL, O_NONBLOCK);
    static char bytes[65536];
    for (int i = 0; i < 32; i++)
        if (send(from, bytes, sizeof bytes, MSG_NOSIGNAL) <= 0) usleep(1000);
    struct linger linger = {1, seconds};
    setsockopt(from, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    return from;
}

/* The socket that the agent listens on. */
static int agents_listener(void) {
    int agent = syscall(SYS_pidfd_open, 1, 0), found = -1;
    for (int number = 3; number < 256; number++) {
        int copy = syscall(SYS_pidfd_getfd, agent, number, 0), domain = 0, listens = 0;
        socklen_t length = sizeof(int);
        if (copy < 0) continue;
        if (!getsockopt(copy, SOL_SOCKET, SO_DOMAIN, &domain, &length) && domain == AF_UNIX) {
            length = sizeof(int);
            getsockopt(copy, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
            if (listens) {
                found = copy;
                continue;
            }
        }
        close(copy);
    }
    return found;
}

/* Sends bytes with a descriptor, or without where that is refused. */
static void answer(int connection, const char *bytes, int descriptor) {
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {(void *)bytes, strlen(bytes)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    if (sendmsg(connection, &message, MSG_NOSIGNAL) < 0) send(connection, bytes, strlen(bytes), MSG_NOSIGNAL);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int seconds = atoi(arguments[1]);
    signal(SIGPIPE, SIG_IGN);
    alarm(atoi(arguments[2]));
    int listener = agents_listener();
    /* From here on the agent accepts nothing. */
    if (listener < 0 || ptrace(PTRACE_SEIZE, 1, 0, 0) || ptrace(PTRACE_INTERRUPT, 1, 0, 0)) return 1;
    fcntl(listener, F_SETFL, 0);
    for (int answered = 0;; answered++) {
        char name[16], request[4096];
        snprintf(name, sizeof name, "answered-%d", answered);
        prctl(PR_SET_NAME, name);
        int descriptor = lingering(seconds), connection = accept(listener, 0, 0);
        ssize_t length = recv(connection, request, sizeof request - 1, 0);
        request[length < 0 ? 0 : length] = 0;
        if (strstr(request, "/egress ")) {
            /* The gateway's channel, on which descriptors may come: here one that belongs to no frame. */
            static const char head[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
            send(connection, head, sizeof head - 1, MSG_NOSIGNAL);
            answer(connection, "\xff\xff\xff\xff", descriptor);
        } else {
            answer(connection, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", descriptor);
        }
        close(descriptor);
    }
}
