<?php

declare(strict_types=1);

namespace Tollhouse;

/**
 * An object of an answer: its fields as properties under the names of the API; null for what was not sent. What this
 * version does not know is in toArray(). A dump shows no content.
 */
abstract class Model implements \JsonSerializable
{
    /** @var array<string, class-string<Model>> Fields that are objects, or lists of objects. */
    protected const TYPES = [];

    /** @param array<string, mixed> $data */
    final public function __construct(private readonly array $data)
    {
    }

    public function __get(string $name): mixed
    {
        $value = $this->data[$name] ?? null;
        $type = static::TYPES[$name] ?? null;
        if ($type === null || !is_array($value)) {
            return $value;
        }
        return array_is_list($value) ? array_map(static fn (array $one) => new $type($one), $value) : new $type($value);
    }

    public function __isset(string $name): bool
    {
        return isset($this->data[$name]);
    }

    /** @return array<string, mixed> The JSON object. */
    public function toArray(): array
    {
        return $this->data;
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        return $this->data;
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['id' => $this->data['id'] ?? null, 'code' => $this->data['result']['code'] ?? null];
    }
}
