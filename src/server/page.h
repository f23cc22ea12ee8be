/* The web page at /: files of src/server/page/, which the build puts into the program (tools/embed_page.py). */
#ifndef RDNA_SERVER_PAGE_H
#define RDNA_SERVER_PAGE_H

#include <stddef.h>

typedef struct page_file {
  const char *path, *type;
  const char *etag; /* with its quotes; other bytes have another */
  const unsigned char *bytes, *gzip;
  size_t size, gzip_size;
} page_file;

extern const page_file page_files[];
extern const size_t page_file_count;

#endif
