package dev.fila.client.errors;

/** The runtime config has no such key. */
public class ConfigKeyNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public ConfigKeyNotFoundException(ErrorDetails details) {
        super(details);
    }

    /** The key. */
    public String configKey() {
        return details().field("config_key");
    }
}
