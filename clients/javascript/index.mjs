import client from "./index.cjs";

export const {
  Tollhouse,
  Answer,
  VERSION,
  classifyResultCode,
  flatten,
  webhooks,
  TollhouseError,
  NoAnswerError,
  WebhookVerificationError,
  ApiError,
  ParameterErrors,
  AuthenticationError,
  NotFoundError,
  ConflictError,
  RateLimitError,
  ServerError,
} = client;
