/* LD_PRELOAD for servers that cannot be told where to listen: a bind to every
 * address becomes a bind to the loopback address. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*bind_function)(int, const struct sockaddr *, socklen_t);

int bind(int fd, const struct sockaddr *address, socklen_t length) {
  static bind_function real;
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
  if (!real) real = (bind_function)dlsym(RTLD_NEXT, "bind");
  if (address && address->sa_family == AF_INET) {
    memcpy(&ipv4, address, sizeof ipv4);
    if (ipv4.sin_addr.s_addr == INADDR_ANY)
      ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(fd, (struct sockaddr *)&ipv4, sizeof ipv4);
  }
  if (address && address->sa_family == AF_INET6) {
    memcpy(&ipv6, address, sizeof ipv6);
    /* A JVM reaches IPv4 through an IPv6 socket, so the mapped form, not ::1. */
    if (IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr))
      inet_pton(AF_INET6, "::ffff:127.0.0.1", &ipv6.sin6_addr);
    return real(fd, (struct sockaddr *)&ipv6, sizeof ipv6);
  }
  return real(fd, address, length);
}
