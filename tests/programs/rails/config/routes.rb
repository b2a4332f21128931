# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

Shop::Application.routes.draw do
  resources :orders, only: %i[index show]
  resources :customers, only: :index
  resource :report, only: :show
  resource :rates, only: :show
  resource :stock, only: :show
  namespace(:api) { resources :orders, only: :index }
end
