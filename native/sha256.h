/* SHA-256 of a short text, as FIPS 180-4 has it. */

#ifndef ROPEWAY_SHA256_H
#define ROPEWAY_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint32_t SHA256_ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static inline uint32_t sha256_turned(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void sha256_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t words[64];
    for (int at = 0; at < 16; at++)
        words[at] = (uint32_t)block[4 * at] << 24 | (uint32_t)block[4 * at + 1] << 16
                  | (uint32_t)block[4 * at + 2] << 8 | block[4 * at + 3];
    for (int at = 16; at < 64; at++) {
        uint32_t near = words[at - 15], far = words[at - 2];
        words[at] = words[at - 16] + words[at - 7]
                  + (sha256_turned(near, 7) ^ sha256_turned(near, 18) ^ (near >> 3))
                  + (sha256_turned(far, 17) ^ sha256_turned(far, 19) ^ (far >> 10));
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int at = 0; at < 64; at++) {
        uint32_t first = h + ((e & f) ^ (~e & g)) + SHA256_ROUNDS[at] + words[at]
                       + (sha256_turned(e, 6) ^ sha256_turned(e, 11)
                          ^ sha256_turned(e, 25));
        uint32_t second = ((a & b) ^ (a & c) ^ (b & c))
                        + (sha256_turned(a, 2) ^ sha256_turned(a, 13)
                           ^ sha256_turned(a, 22));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* The first 16 bytes of the digest. */
static void sha256_half(const uint8_t *text, size_t size, uint8_t digest[16])
{
    uint32_t state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    uint64_t bits = (uint64_t)size * 8;
    for (; size >= 64; text += 64, size -= 64)
        sha256_block(state, text);
    uint8_t last[128] = {0};
    memcpy(last, text, size);
    last[size] = 0x80;
    size_t end = size < 56 ? 64 : 128;
    for (int at = 0; at < 8; at++)
        last[end - 1 - at] = (uint8_t)(bits >> 8 * at);
    sha256_block(state, last);
    if (end == 128)
        sha256_block(state, last + 64);
    for (int at = 0; at < 16; at++)
        digest[at] = (uint8_t)(state[at / 4] >> (24 - at % 4 * 8));
}

#endif
