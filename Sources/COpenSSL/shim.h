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
#include <string.h>

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

/* Stacks are typed by macros, which Swift does not import: certificates are pushed untyped and freed here. */
static inline void tandem_openssl_free_certificates(OPENSSL_STACK *certificates) {
    sk_X509_pop_free((STACK_OF(X509) *)certificates, X509_free);
}

/* What to call a certificate in a message: its subject's common name, or else its first DNS name. Returns the length. */
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
