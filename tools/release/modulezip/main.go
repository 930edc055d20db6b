// Modulezip packs a module of this repository as a file proxy serves it (GOPROXY=file://DIR), from a commit and not
// from what lies in the folder. It is what the go command itself would make of a tag.
//
//	modulezip REPOSITORY SUBFOLDER COMMIT VERSION DIR
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 6 {
		log.Fatal("usage: modulezip REPOSITORY SUBFOLDER COMMIT VERSION DIR")
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		log.Fatal(err)
	}
}

func pack(repository, subfolder, commit, version, dir string) error {
	mod, err := git(repository, "show", commit+":"+subfolder+"/go.mod")
	if err != nil {
		return err
	}
	path := modfile.ModulePath(mod)
	escaped, err := module.EscapePath(path)
	if err != nil {
		return err
	}
	when, err := git(repository, "show", "-s", "--format=%cI", commit)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": strings.TrimSpace(string(when))})
	if err != nil {
		return err
	}
	served := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(served, 0o755); err != nil {
		return err
	}
	packed, err := os.Create(filepath.Join(served, version+".zip"))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := zip.CreateFromVCS(packed, module.Version{Path: path, Version: version}, repository, commit, subfolder); err != nil {
		return fmt.Errorf("%s %s: %w", path, version, err)
	}
	for name, text := range map[string][]byte{version + ".mod": mod, version + ".info": info, "list": []byte(version + "\n")} {
		if err := os.WriteFile(filepath.Join(served, name), text, 0o644); err != nil {
			return err
		}
	}
	return packed.Close()
}

func git(repository string, words ...string) ([]byte, error) {
	asked := exec.Command("git", append([]string{"-C", repository}, words...)...)
	asked.Stderr = os.Stderr
	return asked.Output()
}
