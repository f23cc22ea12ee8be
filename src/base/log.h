/* Messages for people, on stderr or to a callback; silent below RDNA_LOG's level ("warning" by default). A library
 * message never replaces a status. */
#ifndef RDNA_BASE_LOG_H
#define RDNA_BASE_LOG_H

typedef enum rdna__log_level { RDNA__LOG_ERROR, RDNA__LOG_WARNING, RDNA__LOG_INFO, RDNA__LOG_DEBUG } rdna__log_level;

__attribute__((format(printf, 2, 3))) void rdna__log(rdna__log_level level, const char *format, ...);

/* Sends messages to |sink| instead of stderr; NULL restores stderr. Called from any thread, one at a time. */
void rdna__log_set_sink(void (*sink)(void *data, rdna__log_level level, const char *message), void *data);

#endif
