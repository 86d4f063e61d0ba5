#ifndef TANDEM_COPENSSL_SHIM_H
#define TANDEM_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

/* EVP_PKEY_Q_keygen takes its parameters as variable arguments, which Swift does not import. */

static inline EVP_PKEY *tandem_openssl_generate_p256(void) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

static inline EVP_PKEY *tandem_openssl_generate_rsa(size_t bits) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}

/* SHA-256, SHA-1 and MD5 by the functions that work on plain values. OpenSSL 3 marks them deprecated in favour of EVP. An EVP
 * context takes several allocations and look-ups per message, which cost more than the digests of a publish. */

/* A key for HMAC-SHA-256: the states of the inner and the outer hash after the padded key (RFC 2104). Holds no
 * pointer. */
typedef struct {
    SHA256_CTX inner;
    SHA256_CTX outer;
} tandem_openssl_hmac_key;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static inline void tandem_openssl_hmac_prepare(tandem_openssl_hmac_key *key, const void *secret, size_t count) {
    unsigned char block[SHA256_CBLOCK] = {0};
    if (count > sizeof block) {
        SHA256(secret, count, block);
    } else if (count > 0) {
        memcpy(block, secret, count);
    }
    for (size_t i = 0; i < sizeof block; i++) block[i] ^= 0x36;
    SHA256_Init(&key->inner);
    SHA256_Update(&key->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++) block[i] ^= 0x36 ^ 0x5C;
    SHA256_Init(&key->outer);
    SHA256_Update(&key->outer, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

/* Writes SHA256_DIGEST_LENGTH bytes. */
static inline void tandem_openssl_hmac(
    const tandem_openssl_hmac_key *key, const void *message, size_t count, unsigned char *output) {
    SHA256_CTX state = key->inner;
    SHA256_Update(&state, message, count);
    SHA256_Final(output, &state);
    state = key->outer;
    SHA256_Update(&state, output, SHA256_DIGEST_LENGTH);
    SHA256_Final(output, &state);
}

/* Writes SHA256_DIGEST_LENGTH bytes. OpenSSL 3's own SHA256 is EVP's. */
static inline void tandem_openssl_sha256(const void *message, size_t count, unsigned char *output) {
    SHA256_CTX state;
    SHA256_Init(&state);
    SHA256_Update(&state, message, count);
    SHA256_Final(output, &state);
}

/* Writes SHA_DIGEST_LENGTH bytes. OpenSSL 3's own SHA1 is EVP's. */
static inline void tandem_openssl_sha1(const void *message, size_t count, unsigned char *output) {
    SHA_CTX state;
    SHA1_Init(&state);
    SHA1_Update(&state, message, count);
    SHA1_Final(output, &state);
}

/* Writes MD5_DIGEST_LENGTH bytes. */
static inline void tandem_openssl_md5(const void *message, size_t count, unsigned char *output) {
    MD5((const unsigned char *)message, count, output);
}

#pragma GCC diagnostic pop

/* Keeps copies of TLS sessions for libcurl. OpenSSL marks a session as not resumable when its connection is freed
 * without close_notify, and libcurl 7.88 sends none over HTTP/2. A copy is not affected. */
static int tandem_openssl_copy_session(SSL *connection, SSL_SESSION *session) {
    int (*keep)(SSL *, SSL_SESSION *) = (int (*)(SSL *, SSL_SESSION *))SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection));
    SSL_SESSION *copy = keep != NULL ? SSL_SESSION_dup(session) : NULL;
    if (copy != NULL && keep(connection, copy) == 0) SSL_SESSION_free(copy);
    /* The original was not kept. */
    return 0;
}

/* Requires a context with a new-session callback. Call before the context's first connection. */
static inline void tandem_openssl_keep_copies_of_sessions(void *context) {
    SSL_CTX *settings = (SSL_CTX *)context;
    SSL_CTX_set_app_data(settings, (void *)SSL_CTX_sess_get_new_cb(settings));
    SSL_CTX_sess_set_new_cb(settings, tandem_openssl_copy_session);
}

/* A memory BIO's bytes; BIO_get_mem_data is a macro around the untyped BIO_ctrl. The bytes belong to the BIO. */
static inline size_t tandem_openssl_memory(BIO *bio, const char **bytes) {
    char *start = NULL;
    long count = BIO_get_mem_data(bio, &start);
    *bytes = start;
    return count > 0 ? (size_t)count : 0;
}

/* Stacks are typed by macros, which Swift does not import: certificates are pushed untyped and freed here. */
static inline void tandem_openssl_free_certificates(OPENSSL_STACK *certificates) {
    sk_X509_pop_free((STACK_OF(X509) *)certificates, X509_free);
}

/* A certificate's name for messages: its subject's common name, or else its first DNS name. Returns the length. */
static inline size_t tandem_openssl_certificate_name(X509 *certificate, char *text, size_t capacity) {
    int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text, (int)capacity);
    if (length > 0) return (size_t)length;
    size_t found = 0;
    GENERAL_NAMES *names = (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; names != NULL && found == 0 && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS) continue;
        size_t count = (size_t)ASN1_STRING_length(name->d.dNSName);
        if (count >= capacity) continue;
        memcpy(text, ASN1_STRING_get0_data(name->d.dNSName), count);
        found = count;
    }
    GENERAL_NAMES_free(names);
    return found;
}

#endif
