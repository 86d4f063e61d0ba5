#ifndef TANDEM_COPENSSL_SHIM_H
#define TANDEM_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* EVP_PKEY_Q_keygen takes its parameters as variable arguments, which Swift does not import. */

static inline EVP_PKEY *tandem_openssl_generate_p256(void) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

static inline EVP_PKEY *tandem_openssl_generate_rsa(size_t bits) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}

/* A MAC context for HMAC-SHA-256 that still lacks its key; NULL when libcrypto has no such algorithm. In C because the
 * parameters point to their names, which therefore have to outlive the call that takes them. */
static inline EVP_MAC_CTX *tandem_openssl_hmac_sha256(void) {
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_construct_end()};
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(algorithm);
    /* The context keeps a reference of its own. */
    EVP_MAC_free(algorithm);
    if (context != NULL && EVP_MAC_CTX_set_params(context, parameters) != 1) {
        EVP_MAC_CTX_free(context);
        context = NULL;
    }
    return context;
}

/* A memory BIO's bytes; BIO_get_mem_data is a macro around the untyped BIO_ctrl. The bytes belong to the BIO. */
static inline size_t tandem_openssl_memory(BIO *bio, const char **bytes) {
    char *start = NULL;
    long count = BIO_get_mem_data(bio, &start);
    *bytes = start;
    return count > 0 ? (size_t)count : 0;
}

#endif
