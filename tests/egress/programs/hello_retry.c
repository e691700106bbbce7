/* A TLS client that names one server in its first hello and another in the second, which the server asks for.
 *
 *     hello_retry HOST PORT FIRST-NAME SECOND-NAME
 *
 * Prints the subject of the server's certificate.
 */
#include <netdb.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/socket.h>

static const char *second;
static int answers;

static void on_message(int is_written, int version, int type, const void *bytes, size_t length, SSL *ssl, void *argument) {
    /* The server's first hello is the request for another one: the key share it was offered is not its own. */
    if (!is_written && type == SSL3_RT_HANDSHAKE && length && *(const unsigned char *)bytes == SSL3_MT_SERVER_HELLO && !answers++)
        SSL_set_tlsext_host_name(ssl, second);
}

int main(int count, char **arguments) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (count != 5 || getaddrinfo(arguments[1], arguments[2], &hints, &found)) return 2;
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, found->ai_addr, found->ai_addrlen)) return 3;
    second = arguments[4];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set1_groups_list(context, "P-521:X25519");
    SSL_CTX_set_msg_callback(context, on_message);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, connection);
    SSL_set_tlsext_host_name(ssl, arguments[3]);
    if (SSL_connect(ssl) != 1) {
        puts("refused");
        return 1;
    }
    char subject[256];
    X509_NAME_oneline(X509_get_subject_name(SSL_get0_peer_certificate(ssl)), subject, sizeof subject);
    printf("%s after %d\n", subject, answers);
}
