"""Files of a history under whatever URL Spark can read: through Hadoop's file systems, which Spark brings along."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class Storage:
    """The files below one directory, by paths relative to it."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self.directory = directory.rstrip("/")
        self._jvm: Any = spark._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._path("").getFileSystem(self._conf)
        # A checksum file beside each small file would be one more file that says nothing to the next reader.
        self._files.setWriteChecksum(False)

    def exists(self, path: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        return [status.getPath().getName() for status in self._files.listStatus(self._path(folder))]

    def copy(self, source: str, target: str) -> None:
        """Copy a file over whatever is there; object stores have no other way to name one anew."""
        copied = self._jvm.org.apache.hadoop.fs.FileUtil.copy(
            self._files, self._path(source), self._files, self._path(target), False, True, self._conf
        )
        if not copied:
            raise OSError(f"{self.directory}/{source} could not be copied to {target}")

    def write(self, path: str, text: str) -> None:
        """Write a small file over whatever is there."""
        stream = self._files.create(self._path(path), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and what is in it; nothing where there is none."""
        self._files.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.directory}/{path}" if path else self.directory)
