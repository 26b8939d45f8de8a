<?php

declare(strict_types=1);

namespace Tollhouse\Exception;

/** 404: no such id for this entityId. */
final class NotFoundException extends ApiException
{
}
